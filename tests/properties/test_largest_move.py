"""One record or unit moves a sum by at most max_grad_norm: on those made to break it, in every engine and way."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dpal.audit.worst_cases import KINK_WIDTHS, TUNINGS, Kink, Tie, flat_sum, kinks, move, ties, units_of
from dpal.models.resnet9 import ResNet9
from dpal.training.engines import engine as engines
from dpal.training.engines import fused_engine, matrix_gradients
from dpal.training.engines.engine import ClippingEngine
from dpal.training.engines.engine_choice import ENGINES
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.matrix_gradients import GradientMethod
from dpal.training.losses import cross_entropy

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
    pytest.mark.exhaustive,
]

OTHERS = (1, 2, 3, 4, 5, 63, 255, 511, 1023, 2047, 4095)
WAYS = [*ENGINES, "fused, stored", "fused, gram", "fused, bf16"]
# Compiling takes seconds for each number of rows.
COMPILED = [(3, "fused, compiled"), (511, "fused, compiled")]


@pytest.fixture
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[ClippingEngine]:
    name, _, way = request.param.partition(", ")
    kind = ENGINES[name]
    if way in ("stored", "gram"):
        monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod(way))
    options = {"compiled": {"compiled": True}, "bf16": {"precision": "bf16"}}.get(way, {})
    return lambda model, copies=1: kind(  # pyright: ignore
        model=model.train(), loss=cross_entropy, max_grad_norm=1.0, copies=copies, **options
    )


@pytest.mark.parametrize(
    ("others", "make"), [*((others, way) for others in OTHERS for way in WAYS), *COMPILED], indirect=["make"]
)
def test_ties(make: type[ClippingEngine], others: int) -> None:
    for clipped in (True, False):
        engine = make(Tie())
        moves = [move(engine, *ties(others, tuning, clipped=clipped), others + 1) for tuning in range(TUNINGS)]
        assert max(moves) <= 1
        assert max(moves) > 0.95


@pytest.mark.parametrize(
    ("others", "make"), [*((others, way) for others in range(1, 9) for way in WAYS), COMPILED[0]], indirect=["make"]
)
def test_kinks_in_a_last_batch(make: type[ClippingEngine], others: int) -> None:
    for width in KINK_WIDTHS:
        model = Kink(width)
        inputs = kinks(model, others)
        if inputs is None:
            continue
        for last in (0, 1):
            targets = torch.ones(others + 1, dtype=torch.int64)
            targets[-1] = last
            assert move(make(model), inputs, targets, 16) <= 1


@pytest.mark.parametrize("make", ["fused", "opacus", "vmap"], indirect=True)
def test_without_a_public_number_of_rows_kinks_would_break_it(make: type[ClippingEngine]) -> None:
    worst, found = 0.0, False
    for width in KINK_WIDTHS:
        model = Kink(width)
        for others in range(1, 9):
            inputs = kinks(model, others)
            if inputs is None:
                continue
            found = True
            targets = torch.ones(others + 1, dtype=torch.int64)
            engine = make(model)
            step = flat_sum(engine, inputs, targets) - flat_sum(engine, inputs[:-1], targets[:-1])
            worst = max(worst, float(step.norm()))
    if not found:
        pytest.skip("this machine rounds rows alike, however many there are")
    assert worst > 1.5


@pytest.mark.parametrize("make", ["fused, stored", "opacus", "vmap"], indirect=True)
def test_sums_in_float32_would_break_it(make: type[ClippingEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_number_drawn(engine: ClippingEngine, norms: Tensor, present: Tensor, positions: int = 0) -> Tensor:
        bound = engine.max_grad_norm * (1 - len(norms) * 2.0**-23)
        return (bound / norms.clamp(min=bound)).float()

    def in_float32(stored: Tensor, factors: Tensor) -> Tensor:
        return torch.tensordot(factors, stored.flatten(1), dims=1).double().reshape(stored.shape[1:])

    monkeypatch.setattr(ClippingEngine, "clip_factors", by_the_number_drawn)
    for module in (engines, fused_engine):
        monkeypatch.setattr(module, "weighted_sum", in_float32)
    engine = make(Tie())
    moves: list[float] = []
    for tuning in np.linspace(0, TUNINGS, 500):
        inputs, targets = ties(511, float(tuning), clipped=True)
        step = flat_sum(engine, inputs, targets) - flat_sum(engine, inputs[:-1], targets[:-1])
        moves.append(float(step.norm()))
    assert max(moves) > 1.001


def test_nobody_is_rounded_otherwise_because_of_what_another_record_holds() -> None:
    # The same seats with another content in one of them: everybody else's part of the sum is the same, bit for bit.
    model = Kink(33)
    inputs, targets = torch.randn(64, 33, generator=torch.Generator().manual_seed(2)) * 100, torch.zeros(64).long()
    for kind in ENGINES.values():
        norms = kind(model=model.train(), loss=cross_entropy, max_grad_norm=1.0)
        before = norms.record_norms(inputs, targets)
        for changed in (torch.zeros(33), torch.full((33,), torch.nan), torch.full((33,), 1e30)):
            other = inputs.clone()
            other[17] = changed
            after = norms.record_norms(other, targets)
            kept = torch.arange(64) != 17
            assert torch.equal(before[kept], after[kept])


def test_parts_that_cancel_beyond_all_measure_are_scaled_down() -> None:
    # Two positions whose products cancel to a millionth: summed with everybody else's positions, their rounding would
    # be large beside the record's norm.
    class OverTokens(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 2, bias=False)
            torch.nn.init.zeros_(self.linear.weight)

        def forward(self, inputs: Tensor) -> Tensor:
            signs = torch.tensor([1.0, -1.0]).reshape(1, 2, 1)
            return (self.linear(inputs) * signs).sum(dim=1)

    inputs = torch.full((1, 2, 4), 1e6)
    inputs[0, 0, 0] += 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod.GRAM)
        engine = FusedEngine(model=OverTokens(), loss=cross_entropy, max_grad_norm=1.0)
        moved = float(flat_sum(engine, inputs, torch.tensor([0])).norm())
    # The norm is 0.7, below the bound, but what cancels in it is a million times larger.
    assert 0 < moved < 1e-3


@pytest.mark.parametrize("make", WAYS, indirect=True)
def test_a_sum_is_made_of_what_each_record_gives_alone_in_its_seat(make: type[ClippingEngine]) -> None:
    model = ResNet9(channels=1, classes=4)
    inputs, targets = torch.randn(6, 1, 12, 12), torch.randint(0, 4, (6,))
    engine = make(model)
    whole = flat_sum(engine, inputs, targets)
    parts = [flat_sum(engine, inputs, targets, torch.arange(6) == seat) for seat in range(6)]
    assert float((torch.stack(parts).sum(dim=0) - whole).norm()) < 1e-13
    assert all(0.5 < float(part.norm()) <= 1 for part in parts)


RECORDS_OF_A_UNIT = 3
OTHER_UNITS = (1, 3, 64, 511)


@pytest.mark.parametrize(
    ("others", "make"),
    [*((others, way) for others in OTHER_UNITS for way in WAYS), (3, "fused, compiled")],
    indirect=["make"],
)
def test_ties_of_units(make: type[ClippingEngine], others: int) -> None:
    for clipped in (True, False):
        engine = make(Tie(), RECORDS_OF_A_UNIT)  # pyright: ignore
        moves: list[float] = []
        for tuning in range(TUNINGS):
            inputs, targets, weights = units_of(ties(others, tuning, clipped=clipped), RECORDS_OF_A_UNIT)
            moves.append(move(engine, inputs, targets, others + 1, weights))
        assert max(moves) <= 1
        assert max(moves) > 0.95


@pytest.mark.parametrize(
    ("others", "make"),
    [*((others, way) for others in range(1, 5) for way in WAYS), (3, "fused, compiled")],
    indirect=["make"],
)
def test_kinks_of_units_in_a_last_batch(make: type[ClippingEngine], others: int) -> None:
    for width in KINK_WIDTHS:
        model = Kink(width)
        inputs = kinks(model, others * RECORDS_OF_A_UNIT, RECORDS_OF_A_UNIT)
        if inputs is None:
            continue
        for last in (0, 1):
            targets = torch.ones(len(inputs), dtype=torch.int64)
            targets[-RECORDS_OF_A_UNIT:] = last
            weights = units_of((inputs[: others + 1], targets[: others + 1]), RECORDS_OF_A_UNIT)[2]
            engine = make(model, RECORDS_OF_A_UNIT)  # pyright: ignore
            assert move(engine, inputs, targets, 8, weights) <= 1


@pytest.mark.parametrize("make", ["fused", "opacus", "vmap"], indirect=True)
def test_clipping_the_records_of_a_unit_one_by_one_would_break_it(make: type[ClippingEngine]) -> None:
    inputs, targets, _ = units_of(ties(7, 0, clipped=True), RECORDS_OF_A_UNIT)
    engine = make(Tie())
    engine.physical_records = len(inputs)
    others = slice(0, 7 * RECORDS_OF_A_UNIT)
    step = flat_sum(engine, inputs, targets) - flat_sum(engine, inputs[others], targets[others])
    assert float(step.norm()) > 0.95 * RECORDS_OF_A_UNIT


@pytest.mark.parametrize("make", WAYS, indirect=True)
def test_a_sum_is_made_of_what_each_unit_gives_alone_in_its_seat(make: type[ClippingEngine]) -> None:
    model = ResNet9(channels=1, classes=4)
    inputs, targets = torch.randn(12, 1, 12, 12), torch.randint(0, 4, (12,))
    weights = units_of((inputs[:4], targets[:4]), RECORDS_OF_A_UNIT)[2]
    engine = make(model, RECORDS_OF_A_UNIT)  # pyright: ignore
    whole = flat_sum(engine, inputs, targets, None, weights)
    parts = [flat_sum(engine, inputs, targets, torch.arange(4) == seat, weights) for seat in range(4)]
    assert float((torch.stack(parts).sum(dim=0) - whole).norm()) < 1e-13
    assert all(0.3 < float(part.norm()) <= 1 for part in parts)
    # Whatever the others hold, a unit gives the same, bit for bit.
    for changed in (
        torch.zeros_like(inputs[:3]),
        torch.full_like(inputs[:3], 1e4),
        torch.full_like(inputs[:3], torch.nan),
    ):
        other = torch.cat([inputs[:3], changed, inputs[6:]])
        for seat in (0, 2, 3):
            assert torch.equal(flat_sum(engine, other, targets, torch.arange(4) == seat, weights), parts[seat])


def test_records_of_a_unit_that_cancel_beyond_all_measure_are_scaled_down(monkeypatch: pytest.MonkeyPatch) -> None:
    # Their positions are summed together with those of all other units.
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod.GRAM)
    inputs, targets = torch.full((2, 16), 1e6), torch.tensor([0, 1])
    inputs[0, 0] += 1.0
    engine = FusedEngine(model=Tie(), loss=cross_entropy, max_grad_norm=1.0, copies=2)
    moved = float(flat_sum(engine, inputs, targets, None, torch.tensor([0.5, 0.5])).norm())
    assert 0 < moved < 1e-3
