"""Augmented copies of images."""

import pytest
import torch
from networks import SmallTransformer
from phases import phase, run
from torch import nn

from dpal.errors import DpalError, InvalidArgument
from dpal.models.resnet9 import ResNet9
from dpal.training.augmentation import augmented
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource


def test_augmented_copies() -> None:
    images = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
    generator = torch.Generator().manual_seed(0)
    flipped = augmented(images, Augmentation(copies=8, flip=True), generator)
    assert flipped.shape == (16, 3, 4, 5)
    for row, copy in enumerate(flipped):
        original = images[row // 8]
        assert torch.equal(copy, original) or torch.equal(copy, original.flip(-1))
    assert 0 < sum(torch.equal(copy, images[row // 8]) for row, copy in enumerate(flipped)) < 16
    cropped = augmented(images, Augmentation(copies=4, crop=1), generator)
    padded = nn.functional.pad(images, (1, 1, 1, 1), mode="reflect")
    for row, copy in enumerate(cropped):
        windows = [padded[row // 4, :, y : y + 4, x : x + 5] for y in range(3) for x in range(3)]
        assert any(torch.equal(copy, window) for window in windows)
    for wrong in ({"copies": 0}, {"crop": -1}):
        with pytest.raises(InvalidArgument):
            Augmentation(**wrong)


@pytest.mark.parametrize("engine", ["fused", "opacus", "vmap"])
def test_augmentation_in_a_phase(engine: str) -> None:
    torch.manual_seed(0)
    source = TensorSource(torch.randn(12, 1, 8, 8), torch.randint(0, 2, (12,)))
    settings = TrainingSettings(augmentation=Augmentation(copies=3, flip=True, crop=2))
    compute = ComputeSettings(engine=engine)
    model = ResNet9(channels=1, classes=2)
    result = run(model, source, phase(steps=1, rates=(1.0,), batch=12.0), settings=settings, compute=compute)
    assert result.engine == engine
    tokens = TensorSource(torch.randint(0, 9, (12, 6)), torch.randint(0, 2, (12,)))
    with pytest.raises(DpalError, match="is for images"):
        run(SmallTransformer(), tokens, phase(steps=1), settings=settings)
