"""Nothing that the search tries moves a sum beyond the clip; with a bug planted in the engines or the loop, it does."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import dpal
from dpal.audit.attack import QUICK, Effort, Target
from dpal.audit.rounding import RoundingAttack, epsilon_if_moved, largest_move
from dpal.audit.worst_cases import kinked
from dpal.planning.plan import Plan
from dpal.training import loop
from dpal.training.engines import engine as engines
from dpal.training.engines import fused_engine
from dpal.training.engines.engine import ClippedSum, ClippingEngine

FEW = replace(QUICK, looks=1100)
pytestmark = [pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"), pytest.mark.exhaustive]


@cache
def small_plan() -> Plan:
    return dpal.plan(
        target_epsilon=3,
        target_delta=1e-5,
        pool_size=2000,
        initial_size=300,
        query_sizes=(),
        batch_size=50,
        epochs=2,
        planner="step-amplification",
    )


def target(engine: str = "auto", **changed: object) -> Target:
    return Target(plan=small_plan(), engine=engine, device="cpu", **changed)  # pyright: ignore


@pytest.mark.parametrize(
    ("engine", "changed"),
    [
        ("fused", {}),
        ("fused", {"precision": "bf16"}),
        ("vmap", {"max_grad_norm": 0.3}),
        ("opacus", {"max_grad_norm": 7.0}),
        ("fused", {"rows_per_unit": 3}),
        ("vmap", {"rows_per_unit": 3}),
    ],
)
def test_nothing_moves_a_sum_beyond_the_clip(engine: str, changed: dict[str, object]) -> None:
    finding = RoundingAttack().run(target(engine, **changed), FEW)
    assert not finding.broken
    assert finding.epsilon_bound == 0
    # Nearly as far as it may: a search that finds less does not search.
    assert 0.99 < float(finding.note.split(" of the clip")[0].split()[-1]) <= 1


def test_the_same_seed_finds_the_same() -> None:
    few = Effort(looks=200, seed=3)
    assert largest_move(target(), few) == largest_move(target(), few)


def test_sums_in_float32_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_number_drawn(engine: ClippingEngine, norms: Tensor, present: Tensor, positions: int = 0) -> Tensor:
        bound = engine.max_grad_norm * (1 - int(present.sum()) * 2.0**-23)
        return torch.where(present, bound / norms.clamp(min=bound), 0.0).float()

    def in_float32(stored: Tensor, factors: Tensor) -> Tensor:
        return torch.tensordot(factors, stored.flatten(1), dims=1).double().reshape(stored.shape[1:])

    monkeypatch.setattr(ClippingEngine, "clip_factors", by_the_number_drawn)
    for module in (engines, fused_engine):
        monkeypatch.setattr(module, "weighted_sum", in_float32)
    finding = RoundingAttack().run(target("vmap"), QUICK)
    assert finding.broken
    assert finding.epsilon_bound > small_plan().epsilon
    assert "ties" in finding.note


def test_batches_of_a_size_that_depends_on_the_draw_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(any(kinked(others)) for others in range(1, 5)):
        pytest.skip("this machine rounds rows alike, however many there are")
    true = ClippingEngine.clipped_sum

    def without_padding(engine: ClippingEngine, *batch: Any, **named: Any) -> ClippedSum:
        return true(replace(engine, physical_records=None), *batch, **named)

    monkeypatch.setattr(ClippingEngine, "clipped_sum", without_padding)
    monkeypatch.setattr(
        loop, "seated", lambda draw, rows, seats: [draw[i : i + rows] for i in range(0, len(draw), rows)]
    )
    worst = largest_move(target(), Effort(looks=4000))
    assert worst.move > 1.5
    assert "kinks" in worst.what


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("too_far", [1.001, 3.0])
def test_a_clip_that_is_too_long_is_found(rows: int, too_far: float, monkeypatch: pytest.MonkeyPatch) -> None:
    true: Callable[..., Tensor] = ClippingEngine.clip_factors
    monkeypatch.setattr(ClippingEngine, "clip_factors", lambda *given: true(*given) * too_far)
    # Compared with a plain loop, the engine would be refused. So is it not where the loop has the same mistake.
    monkeypatch.setattr("dpal.training.engines.engine_choice.require_agreement", lambda *_: None)
    finding = RoundingAttack().run(target("vmap", rows_per_unit=rows), Effort(looks=200))
    assert finding.broken
    assert finding.epsilon_bound == pytest.approx(epsilon_if_moved(small_plan(), too_far), rel=1e-3)


def test_a_record_that_moves_sums_further_costs_more() -> None:
    costs = [epsilon_if_moved(small_plan(), move) for move in (1.0, 1.2, 4.0)]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(small_plan().epsilon, rel=0.02)
    assert costs[-1] > 2 * costs[0]
