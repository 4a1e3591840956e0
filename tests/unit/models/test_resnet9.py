"""ResNet-9."""

import torch

from dpal.models.resnet9 import ResNet9


def test_sizes_and_shapes() -> None:
    assert sum(each.numel() for each in ResNet9().parameters()) == 2_448_714
    for side in (8, 16, 32):
        assert ResNet9(classes=7)(torch.randn(2, 3, side, side)).shape == (2, 7)
    assert ResNet9(channels=1)(torch.randn(2, 1, 28, 28)).shape == (2, 10)
    assert ResNet9()(torch.randn(2, 3, 9, 13)).shape == (2, 10)
