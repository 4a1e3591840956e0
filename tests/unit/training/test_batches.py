"""Batches of tensors and of named tensors, and calling a model with other weights."""

import pytest
import torch
from torch import Tensor, nn

from dpal.training.batches import called, called_with, record_count, rows

TENSOR = torch.arange(12.0).reshape(4, 3)
NAMED = {"input_ids": torch.arange(8).reshape(4, 2), "mask": torch.ones(4, 2)}


@pytest.mark.parametrize("batch", [TENSOR, NAMED], ids=["tensor", "named"])
def test_rows_are_counted_and_taken_in_every_tensor(batch) -> None:
    assert record_count(batch) == 4
    for index, count in ((slice(1, 3), 2), (torch.tensor([3, 0, 3]), 3), (slice(0, 0), 0)):
        assert record_count(rows(batch, index)) == count
    swapped = rows(batch, torch.tensor([3, 0]))
    parts = [(swapped, batch)] if isinstance(batch, Tensor) else [(swapped[name], batch[name]) for name in batch]
    assert all(torch.equal(part, whole[[3, 0]]) for part, whole in parts)


def test_a_tensor_is_the_only_argument_and_named_ones_go_by_name() -> None:
    assert called(lambda given: given, TENSOR) is TENSOR
    assert called(lambda mask, input_ids: (input_ids, mask), NAMED) == (NAMED["input_ids"], NAMED["mask"])


class Twice(nn.Module):
    """One layer in two places, one parameter under two names, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.second = nn.Linear(3, 3, bias=False)
        self.scale = self.same = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("shift", torch.ones(3))

    def forward(self, given: Tensor) -> Tensor:
        return self.second(self.first(given)) * self.scale * self.same + self.shift


def test_other_weights_are_used_everywhere_and_do_not_stay() -> None:
    model = Twice()
    before = model.first.weight
    state = {"first.weight": 2 * torch.eye(3), "scale": torch.tensor(5.0), "shift": torch.zeros(3)}
    assert torch.equal(called_with(model, state, (TENSOR,), {}), 2 * 2 * 5 * 5 * TENSOR)
    assert model.first.weight is before is model.second.weight
    assert model.scale is model.same and model.scale.item() == 1
    assert torch.equal(model.shift, torch.ones(3))


def test_a_weight_that_is_not_given_is_an_error() -> None:
    with pytest.raises(KeyError, match="shift"):
        called_with(Twice(), {"first.weight": torch.eye(3), "scale": torch.tensor(1.0)}, (TENSOR,), {})
