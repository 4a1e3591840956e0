"""The moving average of the weights."""

import pytest
import torch
from phases import phase, run, two_clouds
from torch import nn

from dpal.errors import InvalidArgument
from dpal.training.averaging import WeightAverage


def test_weight_averages() -> None:
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, decay=0.9)
    first = model.weight.item()
    values = []
    for value in (1.0, 2.0, 3.0):
        model.weight.data.fill_(value)
        average.update()
        values.append(average.average["weight"].item())
    # The decays are 2/11, 3/12 and 4/13.
    assert values[0] == pytest.approx(first * 2 / 11 + 1.0 * 9 / 11)
    assert values[1] == pytest.approx(values[0] * 3 / 12 + 2.0 * 9 / 12)
    assert values[2] == pytest.approx(values[1] * 4 / 13 + 3.0 * 9 / 13)
    with average.applied():
        assert model.weight.item() == pytest.approx(values[2])
    assert model.weight.item() == 3.0
    restored = WeightAverage(model, decay=0.9)
    restored.load_state_dict(average.state_dict())
    assert restored.steps == 3
    assert torch.equal(restored.average["weight"], average.average["weight"])
    with pytest.raises(InvalidArgument, match="decay"):
        WeightAverage(model, decay=1.0)


def test_an_average_runs_along() -> None:
    model = nn.Linear(4, 2)
    average = WeightAverage(model, decay=0.99)
    run(model, two_clouds(), phase(steps=7), average=average)
    assert average.steps == 7
    assert not torch.equal(average.average["weight"], model.weight)


def test_only_what_trains_is_averaged_and_an_error_inside_puts_the_weights_back() -> None:
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    average = WeightAverage(model, decay=0.5)
    model.weight.data.add_(1)
    before = model.weight.detach().clone()
    assert average.average.keys() == {"weight"}
    with pytest.raises(ZeroDivisionError), average.applied():
        assert not torch.equal(model.weight, before)
        _ = 1 / 0
    assert torch.equal(model.weight, before)
