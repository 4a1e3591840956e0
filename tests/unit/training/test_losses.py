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


def test_one_record_does_not_change_anothers_loss() -> None:
    """Clipping by record rests on it."""
    outputs, classes, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), torch.rand(4, 3)
    for loss, targets in ((cross_entropy, classes), (binary_cross_entropy, labels)):
        alone = torch.cat([loss(outputs[i : i + 1], targets[i : i + 1]) for i in range(4)])
        assert torch.allclose(loss(outputs, targets), alone)
        assert loss(outputs[:0], targets[:0]).shape == (0,)


def test_losses_are_float32_whatever_the_outputs_are() -> None:
    outputs = torch.randn(4, 3).bfloat16()
    assert cross_entropy(outputs, torch.tensor([0, 1, 2, 0], dtype=torch.int32)).dtype == torch.float32
    assert binary_cross_entropy(outputs, torch.ones(4, 3, dtype=torch.int64)).dtype == torch.float32
