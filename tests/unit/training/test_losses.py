"""Losses by record."""

import torch

from dpal.training.losses import binary_cross_entropy, cross_entropy, loss_for


def test_losses_have_one_value_a_record() -> None:
    outputs = torch.randn(5, 3)
    single = cross_entropy(outputs, torch.tensor([0, 1, 2, 0, 1]))
    assert torch.allclose(single, -outputs.log_softmax(1)[torch.arange(5), torch.tensor([0, 1, 2, 0, 1])])
    targets = torch.tensor([[0.0, 1.0, 0.8]]).expand(5, 3)
    by_hand = -(targets * outputs.sigmoid().log() + (1 - targets) * (1 - outputs.sigmoid()).log()).mean(1)
    assert torch.allclose(binary_cross_entropy(outputs, targets), by_hand, atol=1e-6)
    assert loss_for(multi_label=True) is binary_cross_entropy
    assert loss_for(multi_label=False) is cross_entropy
