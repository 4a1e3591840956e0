"""Every optimizer by name, and adaptive clipping by hand."""

import pytest
import torch
from phases import phase, run, two_clouds
from torch import nn

from dpal.errors import InvalidArgument
from dpal.training.optimizers import (
    OPTIMIZERS,
    SGD_AGC,
    SgdWithAdaptiveClipping,
    make_optimizer,
    optimizer_for,
    trainable_parameters,
)
from dpal.training.settings import TrainingSettings


@pytest.mark.parametrize("name", [*OPTIMIZERS, SGD_AGC])
def test_every_optimizer_learns(name: str) -> None:
    source = two_clouds()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = make_optimizer(
        name, model, learning_rate=0.05 if name in ("nadam", "adamw") else 0.5, exempt_layer=model[2]
    )
    run(model, source, phase(steps=80), optimizer=optimizer)
    assert (model(source.inputs).argmax(1) == source.targets).float().mean() > 0.85


def test_adaptive_clipping_by_hand() -> None:
    big, small, free = (nn.Parameter(torch.tensor([[3.0, 4.0], [0.0, 0.0]])) for _ in range(3))
    optimizer = SgdWithAdaptiveClipping([big, small, free], exempt=[free], clipping=0.1, lr=1.0)
    for parameter in (big, small, free):
        parameter.grad = torch.tensor([[6.0, 8.0], [1e-5, 0.0]])
    small.grad = torch.tensor([[0.03, 0.04], [1.0, 0.0]])
    optimizer.step()
    # The first unit's weights have norm 5, so its gradient may have 0.5; the second's have 0, so 0.1 · 0.001.
    torch.testing.assert_close(big.detach(), torch.tensor([[3.0 - 0.3, 4.0 - 0.4], [-1e-5, 0.0]]))
    torch.testing.assert_close(small.detach(), torch.tensor([[3.0 - 0.03, 4.0 - 0.04], [-1e-4, 0.0]]))
    torch.testing.assert_close(free.detach(), torch.tensor([[-3.0, -4.0], [-1e-5, 0.0]]))


def test_adaptive_clipping_of_filters() -> None:
    # Two filters with weights of norm 6, so 0.6 is allowed; a gradient of norm 12 and one of 0.6.
    filters = nn.Parameter(torch.ones(2, 4, 3, 3))
    optimizer = SgdWithAdaptiveClipping([filters], clipping=0.1, lr=1.0)
    filters.grad = torch.tensor([2.0, 0.1]).reshape(2, 1, 1, 1).expand_as(filters).clone()
    optimizer.step()
    torch.testing.assert_close(filters.detach(), torch.full_like(filters, 0.9))


def test_an_unknown_optimizer_is_named() -> None:
    with pytest.raises(InvalidArgument, match="optimizer is 'lion'"):
        make_optimizer("lion", nn.Linear(1, 1), learning_rate=1.0)


def test_without_a_stated_learning_rate_it_follows_from_the_model_and_the_steps() -> None:
    model = nn.Linear(99, 100)
    rates = [optimizer_for(TrainingSettings(), model, steps=steps).param_groups[0]["lr"] for steps in (100, 400)]
    assert rates == pytest.approx([0.015, 0.0075])
    # Frozen parameters get no noise.
    model.bias.requires_grad_(False)
    assert trainable_parameters(model) == 9_900
    stated = optimizer_for(TrainingSettings(learning_rate=0.5), model, steps=100)
    assert stated.param_groups[0]["lr"] == 0.5
    model.default_learning_rate = 0.25
    assert optimizer_for(TrainingSettings(), model, steps=100).param_groups[0]["lr"] == 0.25
