"""What every engine must do, next to a plain loop over single records."""

from dataclasses import replace

import pytest
import torch
from engine_cases import assert_same, engine_of, seeded_network
from networks import NETWORKS, RECORDS, cross_entropy, plain_loop
from small_units import plain_units, ragged, sum_over_units
from torch import Tensor, nn

from dpal.errors import InvalidArgument
from dpal.models.resnet9 import ResNet9
from dpal.training.batches import rows
from dpal.training.engines.engine import ClippingEngine
from dpal.training.engines.engine_choice import ENGINES, engine_for
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.opacus_engine import OpacusEngine
from dpal.training.engines.vmap_engine import VmapEngine

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


# Opacus has no rule for these, or gives a padding index a gradient.
NOT_FOR_OPACUS = {
    "convolution, padding same, dilation 2",
    "convolution, reflected border",
    "convolution, circular border",
    "even kernel, padding same",
    "embedding with padding",
    "small transformer",
    "shared and frozen",
    "changes in place",
}


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_engine_equals_a_plain_loop(kind: type[ClippingEngine], name: str) -> None:
    if kind is OpacusEngine and name in NOT_FOR_OPACUS:
        pytest.skip("Opacus has no rule for it, or refuses it")
    model, batch, targets = seeded_network(name)
    engine = engine_of(kind, model)
    norms, wanted = plain_loop(model, batch, targets, 0.5)
    torch.testing.assert_close(engine.record_norms(batch, targets).double(), norms, rtol=1e-4, atol=1e-6)
    result = engine.clipped_sum(batch, targets)
    assert int(result.not_finite) == 0
    assert_same(result.gradients, wanted)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_resnet9(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(1)
    model = ResNet9(channels=1, classes=4)
    batch, targets = torch.randn(RECORDS, 1, 12, 12), torch.randint(0, 4, (RECORDS,))
    _, wanted = plain_loop(model, batch, targets, 1.0)
    assert_same(engine_of(kind, model, 1.0).clipped_sum(batch, targets).gradients, wanted, close=1e-4)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("copies", [2, 3])
def test_copies_are_averaged_before_clipping(kind: type[ClippingEngine], copies: int) -> None:
    for name in ("group norm", "convolution in groups", "small transformer"):
        if kind is OpacusEngine and name in NOT_FOR_OPACUS:
            continue
        model, batch, _ = seeded_network(name)
        batch = torch.cat([batch] * 3)[: 4 * copies]
        targets = torch.randint(0, 3, (4,)).repeat_interleave(copies)
        norms, wanted = plain_loop(model, batch, targets, 0.5, copies)
        engine = engine_of(kind, model, copies=copies)
        torch.testing.assert_close(engine.record_norms(batch, targets).double(), norms, rtol=1e-4, atol=1e-6)
        result = engine.clipped_sum(batch, targets)
        assert_same(result.gradients, wanted)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_empty_and_single_and_split_batches(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 3))
    batch, targets = torch.randn(15, 2, 6, 6), torch.randint(0, 3, (15,))
    engine = engine_of(kind, model)
    empty = engine.clipped_sum(batch[:0], targets[:0])
    assert all(not each.any() for each in empty.gradients.values())
    _, wanted = plain_loop(model, batch, targets, 0.5)
    for size in (1, 7, 15):
        total = {name: torch.zeros_like(each, dtype=torch.float64) for name, each in wanted.items()}
        for start in range(0, 15, size):
            for name, each in engine.clipped_sum(
                batch[start : start + size], targets[start : start + size]
            ).gradients.items():
                total[name] += each
        assert_same(total, wanted)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_records_that_are_not_finite_contribute_zero(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(64, 3))
    batch, targets = torch.randn(6, 2, 6, 6), torch.randint(0, 3, (6,))
    batch[1, 0, 0, 0], batch[4] = float("nan"), float("inf")
    kept = [0, 2, 3, 5]
    _, wanted = plain_loop(model, batch[kept], targets[kept], 0.5)
    result = engine_of(kind, model).clipped_sum(batch, targets)
    assert int(result.not_finite) == 2
    assert_same(result.gradients, wanted)
    everything = engine_of(kind, model).clipped_sum(batch * float("nan"), targets)
    assert everything.not_finite == 6
    assert all(not each.any() for each in everything.gradients.values())


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_one_record_moves_the_sum_by_at_most_the_bound(kind: type[ClippingEngine]) -> None:
    for name in NETWORKS:
        if kind is OpacusEngine and name in NOT_FOR_OPACUS:
            continue
        model, batch, targets = seeded_network(name)
        engine = engine_of(kind, model, 0.01)
        for record in range(RECORDS):
            alone = engine.clipped_sum(batch[record : record + 1], targets[record : record + 1])
            moved = sum(each.double().square().sum() for each in alone.gradients.values()) ** 0.5
            assert moved <= 0.01
            assert moved > 0.0099


def test_norms_do_not_depend_on_the_clip() -> None:
    model, batch, targets = seeded_network("group norm")
    engine = engine_of(FusedEngine, model)
    loose = replace(engine, max_grad_norm=1e6)
    _, whole = plain_loop(model, batch, targets, 1e6)
    assert_same(loose.clipped_sum(batch, targets).gradients, whole)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_the_order_of_images_in_memory_does_not_matter(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(8)
    for channels in (1, 3):
        model = ResNet9(channels=channels, classes=3)
        batch = torch.randn(RECORDS, 8, 8, channels).permute(0, 3, 1, 2)
        targets = torch.randint(0, 3, (RECORDS,))
        _, wanted = plain_loop(model, batch, targets, 1.0)
        assert_same(engine_of(kind, model, 1.0).clipped_sum(batch, targets).gradients, wanted, close=1e-4)


def test_a_callers_autocast_changes_nothing() -> None:
    model, batch, targets = seeded_network("group norm")
    engine = engine_of(FusedEngine, model, 0.01)
    with torch.autocast("cpu", torch.bfloat16):
        alone = engine.clipped_sum(batch[:1], targets[:1]).gradients
    assert float(sum(each.double().square().sum() for each in alone.values())) ** 0.5 <= 0.01


def test_models_in_float64() -> None:
    for name in ("linear over tokens", "group norm", "small transformer"):
        model, batch, targets = seeded_network(name)
        model, batch = model.double(), batch.double() if batch.is_floating_point() else batch
        _, wanted = plain_loop(model, batch, targets, 0.5)
        engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
        assert engine.name == "fused"
        assert_same(engine.clipped_sum(batch, targets).gradients, {name: each.float() for name, each in wanted.items()})


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize(("bound", "value"), [(1e-5, 2e38), (1e-7, 1.1e37), (1e-3, 3e38)])
def test_a_gradient_too_large_for_its_clip_factor_contributes_nothing(
    kind: type[ClippingEngine], bound: float, value: float
) -> None:
    # The factor would be a denormal number, off by up to a third.
    engine = kind(model=nn.Linear(1000, 2), loss=cross_entropy, max_grad_norm=bound)
    result = engine.clipped_sum(torch.full((1, 1000), value), torch.tensor([0]))
    norm = sum(float(each.double().square().sum()) for each in result.gradients.values()) ** 0.5
    assert norm <= bound


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_one_record_moves_a_sum_of_aligned_gradients_by_no_more_than_the_bound(kind: type[ClippingEngine]) -> None:
    # How thousands of others are rounded in float32 depends on every record.
    torch.manual_seed(4)
    model = nn.Linear(40, 3)
    engine = kind(model=model, loss=cross_entropy, max_grad_norm=0.5)
    inputs = torch.ones(8192, 40) + 0.01 * torch.randn(8192, 40)
    targets = torch.zeros(8192, dtype=torch.int64)

    def total(count: int) -> Tensor:
        found = engine.clipped_sum(inputs[:count], targets[:count]).gradients
        return torch.cat([each.flatten().double() for each in found.values()])

    for index in range(20):
        inputs[8000] = 3 * torch.randn(40)
        targets[8000] = index % 3
        assert float((total(8001) - total(8000)).norm()) <= 0.5


@pytest.mark.parametrize("kind", [FusedEngine, VmapEngine])
def test_a_layer_in_two_places_keeps_its_parameters(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(4)
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(4, 3))
    before = list(model.parameters())
    batch, targets = torch.randn(5, 4), torch.randint(0, 3, (5,))
    _, wanted = plain_loop(model, batch, targets, 0.5)
    for _ in range(2):
        assert_same(engine_of(kind, model).clipped_sum(batch, targets).gradients, wanted)
        assert [*map(id, model.parameters())] == [*map(id, before)]


# Every kind of layer and of method, and a unit that is absent.
SIZES = [1, 3, 30, 0, 7]
UNIT_NETWORKS = [
    "linear",
    "linear over tokens",
    "convolution in groups",
    "embedding",
    "group norm",
    "layer norm",
    "group convolutions",
    "small transformer",
    "shared and frozen",
]


def unit_records(name: str, copies: int = 1) -> tuple[nn.Module, Tensor, Tensor]:
    """A network, and different records for all units, each with its copies."""
    model, batch, _ = seeded_network(name)
    count = sum(SIZES) * copies
    many = batch.repeat(-(-count // len(batch)), *[1] * (batch.ndim - 1))[:count]
    if many.is_floating_point():
        many = many + torch.randn_like(many)
    else:
        many = many[torch.arange(count)[:, None], torch.rand(many.shape).argsort(dim=1)]
    return model, many, torch.randint(0, 3, (sum(SIZES),)).repeat_interleave(copies)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("name", UNIT_NETWORKS)
@pytest.mark.parametrize("copies", [1, 2])
def test_the_records_of_a_unit_are_averaged_and_then_clipped(
    kind: type[ClippingEngine], name: str, copies: int
) -> None:
    if kind is OpacusEngine and name in NOT_FOR_OPACUS:
        pytest.skip("Opacus has no rule for it, or refuses it")
    model, batch, targets = unit_records(name, copies)
    table = ragged(SIZES)
    for bound in (0.05, 0.5):
        engine = engine_of(kind, model, bound, copies=30 * copies, physical_records=6)
        result = sum_over_units(engine, batch, targets, table, copies)
        assert int(result.not_finite) == 0
        assert_same(result.gradients, plain_units(model, batch, targets, table, bound, copies))


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_the_planted_bug_of_clipping_each_record_is_noticed(kind: type[ClippingEngine]) -> None:
    model, batch, targets = unit_records("group norm")
    table = ragged(SIZES)
    wanted = plain_units(model, batch, targets, table, 0.05)
    engine = engine_of(kind, model, 0.05)
    added = {name: torch.zeros_like(each) for name, each in wanted.items()}
    averaged = {name: torch.zeros_like(each) for name, each in wanted.items()}
    for unit in table:
        members = torch.from_numpy(unit[unit >= 0])
        for name, each in engine.clipped_sum(rows(batch, members), targets[members]).gradients.items():
            added[name] += each
            averaged[name] += each / max(1, len(members))
    for wrong in (added, averaged):
        with pytest.raises(AssertionError):
            assert_same(wrong, wanted)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_a_unit_with_a_broken_record_contributes_zero_and_changes_no_other(kind: type[ClippingEngine]) -> None:
    model, batch, targets = unit_records("group norm")
    table = ragged(SIZES)
    engine = engine_of(kind, model, 0.05, copies=30)
    healthy = table.copy()
    healthy[2] = -1
    wanted = plain_units(model, batch, targets, healthy, 0.05)
    units_of_two = table[2][table[2] >= 0]
    # The record that is repeated in the empty seats, the last one, and all of them.
    for broken in (units_of_two[:1], units_of_two[-1:], units_of_two):
        for value in (torch.nan, torch.inf, 3e38):
            other = batch.clone()
            other[torch.from_numpy(broken)] = value
            result = sum_over_units(engine, other, targets, table)
            assert int(result.not_finite) == 1
            assert_same(result.gradients, wanted)
    # A unit of one record, whose padding is broken with it.
    other = batch.clone()
    other[0] = torch.nan
    healthy = table.copy()
    healthy[0] = -1
    result = sum_over_units(engine, other, targets, table)
    assert_same(result.gradients, plain_units(model, batch, targets, healthy, 0.05))


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_what_stands_in_for_an_empty_seat_of_a_unit_adds_exactly_nothing(kind: type[ClippingEngine]) -> None:
    model, batch, targets = unit_records("group norm")
    engine = engine_of(kind, model, 0.05, copies=4)
    weights = torch.tensor([0.5, 0.5, 0.0, 0.0] * 2)
    sums = []
    for scale in (1.0, -2.0):
        other = batch[:8].clone()
        other[[2, 3, 6, 7]] *= scale
        sums.append(engine.clipped_sum(other, targets[:8], weights=weights).gradients)
    assert all(torch.equal(each, sums[1][name]) for name, each in sums[0].items())


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_one_unit_moves_the_sum_by_at_most_the_bound(kind: type[ClippingEngine]) -> None:
    for name in UNIT_NETWORKS:
        if kind is OpacusEngine and name in NOT_FOR_OPACUS:
            continue
        model, batch, targets = unit_records(name)
        engine = engine_of(kind, model, 0.01, copies=30)
        for unit in ragged(SIZES)[[0, 1, 2, 4]]:
            alone = sum_over_units(engine, batch, targets, unit[None, :])
            moved = float(sum(each.square().sum() for each in alone.gradients.values())) ** 0.5
            assert 0.0099 < moved <= 0.01


def test_weights_have_one_number_per_row() -> None:
    model, batch, targets = seeded_network("linear")
    engine = engine_of(FusedEngine, model)
    with pytest.raises(InvalidArgument, match=r"shape of weights is \(5, 1\), but must be \(5,\)"):
        engine.clipped_sum(batch, targets, weights=torch.ones(5, 1))
