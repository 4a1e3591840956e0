"""The fused engine in low precision, and compiled."""

import pytest
import torch
from engine_cases import assert_same, engine_of, seeded_network
from networks import Flat, cross_entropy, plain_loop
from small_units import plain_units, ragged, sum_over_units
from torch import nn

from dpal.models.equivariant import SQUARE, LiftingConvolution
from dpal.models.resnet9 import ResNet9
from dpal.training.engines import fused_engine, matrix_gradients
from dpal.training.engines.engine_checks import uneven_weights
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.matrix_gradients import GradientMethod

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


def test_bf16_contributions_never_exceed_the_bound() -> None:
    # In float64, on the very bfloat16 numbers that are multiplied and added up.
    torch.manual_seed(5)
    model = ResNet9(channels=1, classes=4)
    batch, targets = torch.randn(8, 1, 12, 12), torch.randint(0, 4, (8,))
    for forced in (None, GradientMethod.STORED, GradientMethod.GRAM):
        engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=0.7, precision="bf16")
        with pytest.MonkeyPatch.context() as patch:
            if forced is not None:
                patch.setattr(matrix_gradients, "cheapest_method", lambda *_, forced=forced, **__: forced)
            healthy, pieces = engine._run(engine._parameters(), batch, targets, b"")
        norms = fused_engine._upper_norms(pieces, healthy)
        factors = 0.7 / norms.clamp(min=0.7)
        squares = torch.zeros(8, dtype=torch.float64)
        for stored in pieces.stored.values():
            squares += (stored.double().flatten(1) * factors[:, None]).square().sum(1)
        for sides in pieces.sides.values():
            product = (sides.left.double() * factors.reshape(-1, 1, 1, 1)).transpose(-1, -2) @ sides.right.double()
            squares += product.flatten(1).square().sum(1)
        assert float(squares.sqrt().max()) <= 0.7
        assert float(squares.sqrt().min()) > 0.7 * 0.99
        assert {each.dtype for each in engine._sum(pieces, norms, factors, False).values()} == {torch.float64}


def test_bf16_is_close_to_float32() -> None:
    model, batch, targets = seeded_network("group norm")
    _, wanted = plain_loop(model, batch, targets, 0.5)
    found = engine_of(FusedEngine, model, precision="bf16").clipped_sum(batch, targets).gradients
    assert_same(found, wanted, close=0.05)


@pytest.mark.parametrize("method", [GradientMethod.STORED, GradientMethod.GRAM])
def test_compiled_equals_eager_and_pads(method: GradientMethod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: method)
    torch.manual_seed(6)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=0.5, compiled=True, physical_records=6)
    batch, targets = torch.randn(6, 2, 6, 6), torch.randint(0, 3, (6,))
    for count in (6, 4, 1):
        _, wanted = plain_loop(model, batch[:count], targets[:count], 0.5)
        result = engine.clipped_sum(batch[:count], targets[:count])
        assert_same(result.gradients, wanted)
    # The graph takes parameters as they are now, not as they were when it was traced.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
    batch[2] = float("nan")
    kept = [0, 1, 3, 4, 5]
    _, wanted = plain_loop(model, batch[kept], targets[kept], 0.5)
    result = engine.clipped_sum(batch, targets)
    assert int(result.not_finite) == 1
    assert_same(result.gradients, wanted)


def test_a_compiled_graph_draws_dropout_anew() -> None:
    torch.manual_seed(9)
    model = nn.Sequential(nn.Linear(6, 20), nn.Dropout(0.5), nn.Linear(20, 3))
    engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=1e6, compiled=True, physical_records=4)
    batch, targets = torch.randn(4, 6), torch.randint(0, 3, (4,))
    first, second = (engine.clipped_sum(batch, targets).gradients["0.weight"] for _ in range(2))
    assert not torch.equal(first, second)


def test_a_mode_has_its_own_code() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))
    batch, targets = torch.randn(4, 4), torch.randint(0, 3, (4,))
    engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=1e6, compiled=True)
    noisy = [engine.clipped_sum(batch, targets).gradients["1.weight"] for _ in range(2)]
    model.eval()
    quiet = [engine.clipped_sum(batch, targets).gradients["1.weight"] for _ in range(2)]
    assert not torch.equal(*noisy)
    assert torch.equal(*quiet)


def test_compiled_bf16_contributions_never_exceed_the_bound() -> None:
    # Compilers drop a rounding to bfloat16 and back; contributions must not grow by it.
    torch.manual_seed(9)
    for model, batch, forced in (
        (nn.Linear(40, 2, bias=False), torch.randn(150, 40), False),
        (Flat(nn.Conv2d(2, 3, 3), 3), torch.randn(40, 2, 6, 6), False),
        (Flat(nn.Conv2d(2, 3, 3), 3), torch.randn(40, 2, 6, 6), True),
        (Flat(LiftingConvolution(2, 3, SQUARE), 24), torch.randn(40, 2, 6, 6), False),
    ):
        targets = torch.randint(0, 2, (len(batch),))
        engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=0.01, precision="bf16", compiled=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matrix_gradients, "cheapest_method", lambda *_, forced=forced, **__: forced)
            for index in range(len(batch)):
                one = slice(index, index + 1)
                gradients = engine.clipped_sum(batch[one], targets[one]).gradients.values()
                norm = sum(float(each.double().square().sum()) for each in gradients) ** 0.5
                assert 0.0099 < norm <= 0.01


def test_compiled_code_that_exceeds_the_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(9)
    model, batch, targets = nn.Linear(40, 2, bias=False), torch.randn(20, 40), torch.randint(0, 2, (20,))
    options = {"loss": cross_entropy, "max_grad_norm": 3.0, "precision": "bf16", "compiled": True}
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod.GRAM)
    right = FusedEngine(model=model, **options)
    assert right.keeps_bound(batch, targets)
    assert right.max_grad_norm == 3.0

    true = matrix_gradients.weighted_gram
    monkeypatch.setattr(matrix_gradients, "weighted_gram", lambda *given: true(*given) * (1 + 1e-3))
    assert not FusedEngine(model=model, **options).keeps_bound(batch, targets)


@pytest.mark.parametrize("method", [GradientMethod.STORED, GradientMethod.GRAM])
def test_compiled_units_equal_a_plain_loop(method: GradientMethod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: method)
    torch.manual_seed(6)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    batch, targets = torch.randn(13, 2, 6, 6), torch.randint(0, 3, (13,))
    engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=0.5, copies=5, compiled=True)
    # The weights are an argument of the compiled code: other units must not get those of the first.
    for sizes in ([2, 5, 0, 1], [5, 1, 3, 4]):
        table = ragged(sizes)
        result = sum_over_units(engine, batch, targets, table)
        assert_same(result.gradients, plain_units(model, batch, targets, table, 0.5))
    batch[0] = float("nan")
    result = sum_over_units(engine, batch, targets, table)
    assert int(result.not_finite) == 1
    table[0] = -1
    assert_same(result.gradients, plain_units(model, batch, targets, table, 0.5))


def test_bounds_are_kept_by_compiled_code_for_units_too(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(9)
    model, batch, targets = nn.Linear(40, 2, bias=False), torch.randn(12, 40), torch.randint(0, 2, (12,))
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod.GRAM)
    engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=3.0, copies=3, precision="bf16", compiled=True)
    assert engine.keeps_bound(batch, targets, uneven_weights(4, 3, targets.device))
