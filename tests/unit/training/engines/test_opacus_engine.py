"""Opacus's hooks: on while a sum is computed, and gone afterwards, whatever happens."""

import pytest
import torch
from engine_cases import assert_same, engine_of
from networks import plain_loop
from torch import Tensor, nn

from dpal.training.engines.engine import NotCoveredError
from dpal.training.engines.opacus_engine import OpacusEngine


def small() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(5)
    model = nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(12, 3))
    return model, torch.randn(4, 2, 6), torch.randint(0, 3, (4,))


def is_as_before(model: nn.Module) -> bool:
    hooks = any(module._forward_hooks or module._backward_hooks for module in model.modules())
    stored = any(getattr(each, "grad_sample", None) is not None or each.grad is not None for each in model.parameters())
    return not hooks and not stored


def test_a_layer_that_only_opacus_has_a_rule_for() -> None:
    model, batch, targets = small()
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(engine_of(OpacusEngine, model).clipped_sum(batch, targets).gradients, wanted)
    assert is_as_before(model)


def test_no_hook_and_no_gradient_is_left_after_an_error() -> None:
    model, batch, _ = small()
    engine = engine_of(OpacusEngine, model)
    with pytest.raises(IndexError):
        engine.clipped_sum(batch, torch.full((4,), 99))
    assert is_as_before(model)


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4), nn.LSTM(4, 4)], ids=["batch norm", "lstm"])
def test_what_opacus_does_not_cover_is_refused(layer: nn.Module) -> None:
    with pytest.raises(NotCoveredError):
        engine_of(OpacusEngine, nn.Sequential(layer))


def test_a_model_in_evaluation_mode_stays_in_it() -> None:
    model, batch, targets = small()
    _, wanted = plain_loop(model, batch, targets, 0.5)
    engine = engine_of(OpacusEngine, model.eval())
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
    assert not any(module.training for module in model.modules())
