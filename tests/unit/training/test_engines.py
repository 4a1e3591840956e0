"""Every engine beside a plain loop over single records."""

import logging
from dataclasses import replace

import pytest
import torch
from networks import NETWORKS, RECORDS, Flat, cross_entropy, plain_loop
from torch import Tensor, nn

from dpal.errors import InvalidArgument, MixesRecords
from dpal.models.equivariant import SQUARE, GroupConvolution, LiftingConvolution
from dpal.models.resnet9 import ResNet9
from dpal.training.engines import compilation, fused_engine, matrix_gradients
from dpal.training.engines.engine import ClippingEngine, NotCoveredError
from dpal.training.engines.engine_choice import ENGINES, engine_for
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.matrix_gradients import GradientMethod
from dpal.training.engines.opacus_engine import OpacusEngine
from dpal.training.engines.tied_layers import TiedGroupNorm
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


def seeded_network(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(sum(map(ord, name)))
    model, batch = NETWORKS[name]()
    return model, batch, torch.randint(0, 3, (RECORDS,))


def made(kind: type[ClippingEngine], model: nn.Module, max_grad_norm: float = 0.5, **options: object) -> ClippingEngine:
    return kind(model=model, loss=cross_entropy, max_grad_norm=max_grad_norm, **options)


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor], *, close: float = 5e-5) -> None:
    assert found.keys() == wanted.keys()
    scale = max(float(each.abs().max()) for each in wanted.values()) or 1.0
    for name, each in wanted.items():
        assert found[name].shape == each.shape
        assert found[name].dtype == torch.float64
        torch.testing.assert_close(found[name], each.double(), rtol=0, atol=close * scale, msg=name)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_engine_equals_a_plain_loop(kind: type[ClippingEngine], name: str) -> None:
    if kind is OpacusEngine and name in NOT_FOR_OPACUS:
        pytest.skip("Opacus has no rule for it, or refuses it")
    model, batch, targets = seeded_network(name)
    engine = made(kind, model)
    norms, wanted = plain_loop(model, batch, targets, 0.5)
    torch.testing.assert_close(engine.record_norms(batch, targets).double(), norms, rtol=1e-4, atol=1e-6)
    result = engine.clipped_sum(batch, targets)
    assert int(result.not_finite) == 0
    assert_same(result.gradients, wanted)


@pytest.mark.parametrize("way", ["stored", "gram"])
@pytest.mark.parametrize("name", NETWORKS)
def test_both_ways_to_a_norm_agree(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod(way))
    model, batch, targets = seeded_network(name)
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(made(FusedEngine, model).clipped_sum(batch, targets).gradients, wanted)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_resnet9(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(1)
    model = ResNet9(channels=1, classes=4)
    batch, targets = torch.randn(RECORDS, 1, 12, 12), torch.randint(0, 4, (RECORDS,))
    _, wanted = plain_loop(model, batch, targets, 1.0)
    assert_same(made(kind, model, 1.0).clipped_sum(batch, targets).gradients, wanted, close=1e-4)


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
        engine = made(kind, model, copies=copies)
        torch.testing.assert_close(engine.record_norms(batch, targets).double(), norms, rtol=1e-4, atol=1e-6)
        result = engine.clipped_sum(batch, targets)
        assert_same(result.gradients, wanted)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_empty_and_single_and_split_batches(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 3))
    batch, targets = torch.randn(15, 2, 6, 6), torch.randint(0, 3, (15,))
    engine = made(kind, model)
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
    result = made(kind, model).clipped_sum(batch, targets)
    assert int(result.not_finite) == 2
    assert_same(result.gradients, wanted)
    everything = made(kind, model).clipped_sum(batch * float("nan"), targets)
    assert everything.not_finite == 6
    assert all(not each.any() for each in everything.gradients.values())


@pytest.mark.parametrize("way", ["stored", "gram"])
def test_a_broken_record_spoils_no_sum_in_either_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod(way))
    for name in ("linear over tokens", "group norm", "convolution in groups"):
        model, batch, targets = seeded_network(name)
        batch[2] = float("inf")
        kept = [0, 1, 3, 4]
        _, wanted = plain_loop(model, batch[kept], targets[kept], 0.5)
        result = made(FusedEngine, model).clipped_sum(batch, targets)
        assert int(result.not_finite) == 1
        assert_same(result.gradients, wanted)


@pytest.mark.parametrize("kind", ENGINES.values(), ids=ENGINES)
def test_one_record_moves_the_sum_by_at_most_the_bound(kind: type[ClippingEngine]) -> None:
    for name in NETWORKS:
        if kind is OpacusEngine and name in NOT_FOR_OPACUS:
            continue
        model, batch, targets = seeded_network(name)
        engine = made(kind, model, 0.01)
        for record in range(RECORDS):
            alone = engine.clipped_sum(batch[record : record + 1], targets[record : record + 1])
            moved = sum(each.double().square().sum() for each in alone.gradients.values()) ** 0.5
            assert moved <= 0.01
            assert moved > 0.0099


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
    found = made(FusedEngine, model, precision="bf16").clipped_sum(batch, targets).gradients
    assert_same(found, wanted, close=0.05)


def test_compiled_equals_eager_and_pads() -> None:
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
    for way in (GradientMethod.STORED, GradientMethod.GRAM):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matrix_gradients, "cheapest_method", lambda *_, way=way, **__: way)
            fresh = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=0.5, compiled=True, physical_records=6)
            result = fresh.clipped_sum(batch, targets)
        assert int(result.not_finite) == 1
        assert_same(result.gradients, wanted)


def test_the_automatic_choice(caplog: pytest.LogCaptureFixture) -> None:
    class OwnParameter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.head = nn.Parameter(torch.ones(4)), nn.Linear(4, 3)

        def forward(self, given: Tensor) -> Tensor:
            return self.head(given * self.scale)

    targets = torch.randint(0, 3, (4,))
    cases = [
        (nn.Linear(4, 3), torch.randn(4, 4), FusedEngine),
        (nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(12, 3)), torch.randn(4, 2, 6), OpacusEngine),
        (OwnParameter(), torch.randn(4, 4), OpacusEngine),
    ]
    for model, batch, expected in cases:
        with caplog.at_level(logging.INFO, logger="dpal.training"):
            engine = engine_for(model, cross_entropy, max_grad_norm=1.0, sample=(batch, targets))
        assert type(engine) is expected
        assert f"clipping engine: {expected.name}" in caplog.text
        _, wanted = plain_loop(model, batch, targets, 1.0)
        assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
    assert "no rule for the layer 0 (Conv1d)" in caplog.text


def test_the_choice_does_not_depend_on_the_mode() -> None:
    # Models come from scoring, in evaluation mode.
    model = nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(12, 3)).eval()
    sample = (torch.randn(4, 2, 6), torch.randint(0, 3, (4,)))
    assert engine_for(model, cross_entropy, max_grad_norm=1.0, sample=sample).name == "opacus"
    assert not any(module.training for module in model.modules())


def test_the_engine_by_name() -> None:
    sample = (torch.randn(4, 4), torch.randint(0, 3, (4,)))
    for name, kind in ENGINES.items():
        assert type(engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1, sample=sample, name=name)) is kind
    with pytest.raises(InvalidArgument, match="engine is 'ghost'"):
        engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1, sample=sample, name="ghost")
    with pytest.raises(InvalidArgument, match="precision is 'half'"):
        engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1, sample=sample, precision="half")
    frozen = nn.Linear(4, 3).requires_grad_(False)
    with pytest.raises(InvalidArgument, match="at least one parameter that trains"):
        engine_for(frozen, cross_entropy, max_grad_norm=1, sample=sample)


def test_batch_norm_is_refused_by_name() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(MixesRecords, match=r"layer 1 is a BatchNorm2d.*GroupNorm\(32, 4\)"):
        engine_for(model, cross_entropy, max_grad_norm=1, sample=(torch.randn(2, 2, 6, 6), torch.tensor([0, 1])))


def test_mixing_in_disguise_is_found() -> None:
    class CentresTheBatch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 3)

        def forward(self, given: Tensor) -> Tensor:
            out = self.body(given)
            return out - out.mean(0)

    with pytest.raises(MixesRecords, match="content changes a record's loss"):
        engine_for(
            CentresTheBatch(), cross_entropy, max_grad_norm=1, sample=(torch.randn(3, 4), torch.tensor([0, 1, 2]))
        )


def test_a_use_behind_the_layers_back_is_found(caplog: pytest.LogCaptureFixture) -> None:
    # The matrix is used by the layer and, unseen by it, once more: the fused engine would miss a part of the gradient.
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, given: Tensor) -> Tensor:
            return self.layer(given) @ self.layer.weight

    model, batch, targets = Hidden(), torch.randn(3, 3), torch.tensor([0, 1, 2])
    with caplog.at_level(logging.INFO, logger="dpal.training"):
        engine = engine_for(model, cross_entropy, max_grad_norm=1.0, sample=(batch, targets))
    assert type(engine) is VmapEngine
    _, wanted = plain_loop(model, batch, targets, 1.0)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


def test_what_the_fused_engine_cannot_see_it_refuses() -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 3)

        def forward(self, given: Tensor) -> Tensor:
            return self.body(given.transpose(0, 1)).mean(0)

    class ChangesItsInput(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 4)

        def forward(self, given: Tensor) -> Tensor:
            hidden = given * 1.0
            out = self.body(hidden)
            hidden.add_(1.0)
            return out

    batch, targets = torch.randn(2, 5, 4), torch.tensor([0, 1])
    with pytest.raises(NotCoveredError, match="records must be the first dimension"):
        made(FusedEngine, TimeFirst()).clipped_sum(batch, targets)
    with pytest.raises(NotCoveredError, match="changed in place"):
        made(FusedEngine, ChangesItsInput()).clipped_sum(batch[:, 0], targets)
    whole = FusedEngine(model=nn.Linear(4, 3), loss=lambda o, t: cross_entropy(o, t).sum(), max_grad_norm=1)
    with pytest.raises(NotCoveredError, match="not one value a record"):
        whole.clipped_sum(batch[:, 0], targets)
    with pytest.raises(NotCoveredError, match="sparse"):
        made(FusedEngine, nn.Embedding(4, 3, sparse=True))


def test_layers_are_as_before_after_a_run() -> None:
    model, batch, targets = seeded_network("group norm")
    before = model(batch)
    made(FusedEngine, model).clipped_sum(batch, targets)
    assert torch.equal(model(batch), before)
    assert all("forward" not in vars(module) for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_norms_do_not_depend_on_the_clip() -> None:
    model, batch, targets = seeded_network("group norm")
    engine = made(FusedEngine, model)
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
        assert_same(made(kind, model, 1.0).clipped_sum(batch, targets).gradients, wanted, close=1e-4)


def test_a_compiled_graph_draws_dropout_anew() -> None:
    torch.manual_seed(9)
    model = nn.Sequential(nn.Linear(6, 20), nn.Dropout(0.5), nn.Linear(20, 3))
    engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=1e6, compiled=True, physical_records=4)
    batch, targets = torch.randn(4, 6), torch.randint(0, 3, (4,))
    first, second = (engine.clipped_sum(batch, targets).gradients["0.weight"] for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("way", ["stored", "gram"])
def test_positions_that_nearly_cancel_do_not_escape_the_clip(
    precision: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two tokens with the same input and opposite output gradients: what is left is near the rounding of either.
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod(way))

    class Cancelling(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.body = nn.Linear(width, width, bias=False)

        def forward(self, given: Tensor) -> Tensor:
            return (self.body(given[:, :2]) * given[:, 2:]).flatten(1).sum(1)

    for seed in range(60):
        torch.manual_seed(seed)
        width = (8, 64, 96)[seed % 3]
        same = (torch.rand(1, 1, width) * 3 + 0.3).expand(1, 2, width)
        opposite = torch.rand(1, 1, width) + 0.5
        gradient = torch.cat([opposite, -opposite], 1) + 2.0**-11 * torch.randn(1, 2, width)
        batch = torch.cat([same, gradient], 1) * 1000
        engine = FusedEngine(model=Cancelling(width), loss=lambda o, _: o, max_grad_norm=1.0, precision=precision)
        alone = engine.clipped_sum(batch, torch.zeros(1)).gradients["body.weight"]
        assert float(alone.double().norm()) <= 1.0


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("variance", torch.ones(5))
        self.last = torch.zeros(4)


class TrainingBatchNorm(Body):
    def forward(self, given: Tensor) -> Tensor:
        hidden = nn.functional.batch_norm(self.body(given), self.mean, self.variance, training=self.training)
        return self.head(hidden)


class Mixup(Body):
    def forward(self, given: Tensor) -> Tensor:
        return self.head(self.body(0.5 * given + 0.5 * given.flip(0) if self.training else given))


class Remembers(Body):
    def forward(self, given: Tensor) -> Tensor:
        hidden = self.body(given + self.last)
        self.last = given.detach().mean(0)
        return self.head(hidden)


class RunningMean(Body):
    def forward(self, given: Tensor) -> Tensor:
        hidden = self.body(given)
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(hidden.detach().mean(0), 0.1)
        return self.head(hidden)


class SortsByLength(Body):
    def forward(self, given: Tensor) -> Tensor:
        order = torch.argsort((given != 0).sum(1), stable=True)
        return self.head(self.body(given[order])[torch.argsort(order)])


class BehindAZero(Body):
    """A head that starts at zero hides everything before it, unless the weights are moved."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.head.weight)

    def forward(self, given: Tensor) -> Tensor:
        return self.head(self.body(nn.functional.normalize(given + 0.5 * given.mean(0))))


SAMPLES = {
    "different": torch.randn(5, 4, generator=torch.Generator().manual_seed(1)),
    "identical": torch.ones(5, 4),
    "partly broken": torch.cat([torch.full((2, 4), float("nan")), torch.ones(3, 4)]),
}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("kind", [TrainingBatchNorm, Mixup, Remembers, RunningMean, BehindAZero])
def test_company_is_noticed_whatever_the_sample(kind: type[nn.Module], sample: Tensor) -> None:
    torch.manual_seed(2)
    with pytest.raises(MixesRecords):
        engine_for(kind(), cross_entropy, max_grad_norm=1.0, sample=(sample, torch.tensor([0, 1, 2, 0, 1])))


class PredictingBatchNorm(Body):
    def forward(self, given: Tensor) -> Tensor:
        if not self.training and len(given) > 1:
            given = (given - given.mean(0)) / (given.std(0) + 1e-6)
        return self.head(self.body(given))


class PredictingMemory(Body):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("newest", torch.zeros(4))

    def forward(self, given: Tensor) -> Tensor:
        if not self.training:
            self.newest.copy_(given[-1].detach())
        return self.head(self.body(given))


@pytest.mark.parametrize("name", ["auto", *ENGINES])
@pytest.mark.parametrize("kind", [PredictingBatchNorm, PredictingMemory])
def test_company_in_prediction_is_noticed_too(kind: type[nn.Module], name: str) -> None:
    sample = (SAMPLES["different"], torch.tensor([0, 1, 2, 0, 1]))
    with pytest.raises(MixesRecords):
        engine_for(kind(), cross_entropy, max_grad_norm=1.0, sample=sample, name=name)


def test_a_sort_inside_the_model_does_not_swap_records() -> None:
    torch.manual_seed(3)
    model, targets = SortsByLength(), torch.tensor([0, 1, 2, 0, 1])
    engine = engine_for(model, cross_entropy, max_grad_norm=0.1, sample=(SAMPLES["different"], targets))
    assert engine.name != "fused"
    batch = SAMPLES["different"].clone()
    batch[0, :3], batch[3, 1] = 0, 0
    _, wanted = plain_loop(model, batch, targets, 0.1)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


def test_one_record_is_no_sample() -> None:
    sample = (torch.randn(1, 4), torch.tensor([0]))
    with pytest.raises(InvalidArgument, match="at least 2"):
        engine_for(Body(), cross_entropy, max_grad_norm=1.0, sample=sample)


def test_the_check_leaves_the_model_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 3))
    model[0].eval()
    model[0].weight.grad = gradient = torch.ones(5, 4)
    before = [each.detach().clone() for each in model.parameters()]
    modes = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    engine_for(model, cross_entropy, max_grad_norm=1.0, sample=(torch.randn(4, 4), torch.tensor([0, 1, 2, 0])))
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert [module.training for module in model.modules()] == modes
    assert model[0].weight.grad is gradient
    assert len(state) == len(torch.random.get_rng_state())


def test_an_embedding_used_twice_and_layers_called_by_keyword() -> None:
    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.head = nn.Embedding(9, 6, padding_idx=0), nn.Linear(6, 3)

        def forward(self, pairs: Tensor) -> Tensor:
            first, second = pairs.chunk(2, dim=1)
            return self.head(input=self.tokens(first).mean(1) * self.tokens(second).mean(1))

    torch.manual_seed(4)
    model, batch, targets = Pairs(), torch.randint(0, 9, (5, 8)), torch.randint(0, 3, (5,))
    engine = engine_for(model, cross_entropy, max_grad_norm=0.2, sample=(batch, targets))
    assert engine.name == "fused"
    _, wanted = plain_loop(model, batch, targets, 0.2)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


def test_a_layer_with_a_forward_of_its_own_is_left_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 3))
    plain = model[0].forward
    model[0].forward = lambda given: 2 * plain(given)
    sample = (torch.randn(3, 4), torch.tensor([0, 1, 2]))
    engine = engine_for(model, cross_entropy, max_grad_norm=1.0, sample=sample)
    assert engine.name != "fused"
    assert "forward" in vars(model[0])


def test_a_callers_autocast_changes_nothing() -> None:
    model, batch, targets = seeded_network("group norm")
    engine = made(FusedEngine, model, 0.01)
    with torch.autocast("cpu", torch.bfloat16):
        alone = engine.clipped_sum(batch[:1], targets[:1]).gradients
    assert float(sum(each.double().square().sum() for each in alone.values())) ** 0.5 <= 0.01


class NearTies(nn.Module):
    """What rounding decides in float32, differently for one record and for a batch, and float64 does not."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(20, 8), nn.Linear(8, 3)
        self.register_buffer("ways", torch.randn(20, 8))

    def forward(self, given: Tensor) -> Tensor:
        first = (given / len(given)) @ self.ways * len(given)
        return self.head(self.body(given) * (1 + 0.03 * (first > given @ self.ways + 1e-10)))


def test_near_ties_turn_no_engine_down() -> None:
    torch.manual_seed(0)
    sample = (torch.randn(5, 20), torch.tensor([0, 1, 2, 0, 1]))
    for name in ENGINES:
        assert engine_for(NearTies(), cross_entropy, max_grad_norm=1.0, sample=sample, name=name).name == name


def test_a_model_that_takes_float32_only_is_checked_in_float32() -> None:
    class Float32Only(Body):
        def forward(self, given: Tensor) -> Tensor:
            return self.head(self.body(given.float()))

    targets = torch.tensor([0, 1, 2, 0, 1])
    engine = engine_for(Float32Only(), cross_entropy, max_grad_norm=1.0, sample=(SAMPLES["different"], targets))
    assert engine.name == "fused"


def test_an_engine_that_cannot_run_in_the_precision_is_not_chosen() -> None:
    class OwnConstant(Body):
        def forward(self, given: Tensor) -> Tensor:
            return self.head(self.body(given) * torch.ones(5))

    targets = torch.tensor([0, 1, 2, 0, 1])
    for precision, expected in (("float32", FusedEngine), ("bf16", OpacusEngine)):
        sample = (SAMPLES["different"], targets)
        engine = engine_for(OwnConstant(), cross_entropy, max_grad_norm=1.0, sample=sample, precision=precision)
        assert type(engine) is expected
        assert int(engine.clipped_sum(*sample).not_finite) == 0


def test_models_in_float64() -> None:
    for name in ("linear over tokens", "group norm", "small transformer"):
        model, batch, targets = seeded_network(name)
        model, batch = model.double(), batch.double() if batch.is_floating_point() else batch
        _, wanted = plain_loop(model, batch, targets, 0.5)
        engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
        assert engine.name == "fused"
        assert_same(engine.clipped_sum(batch, targets).gradients, {name: each.float() for name, each in wanted.items()})


def test_a_foreign_tf32_setting_is_named() -> None:
    # Not as a failure of every engine.
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        with pytest.raises(InvalidArgument, match="choose a precision in dpal"):
            engine_for(
                nn.Linear(4, 3),
                cross_entropy,
                max_grad_norm=1.0,
                sample=(torch.randn(3, 4), torch.tensor([0, 1, 2])),
            )
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


class Scaled(nn.Module):
    """A layer whose behaviour no name, shape or text tells."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.linear, self.scale = nn.Linear(4, 3), scale

    def forward(self, given: Tensor) -> Tensor:
        return self.linear(given) * self.scale


def test_compiled_code_is_shared_by_what_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: dict[object, object] = {}
    monkeypatch.setattr(compilation, "_COMPILED", compiled)
    torch.manual_seed(8)
    batch, targets = torch.randn(4, 4), torch.randint(0, 3, (4,))

    def right(model: nn.Module) -> int:
        """Whether the engine is right; how much code there is then."""
        engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=0.5, compiled=True)
        _, wanted = plain_loop(model, batch, targets, 0.5)
        assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
        return len(compiled)

    first = right(Scaled(1.0))
    # Other weights, same code.
    assert right(Scaled(1.0)) == first
    # The sum is the same function, the norms are not.
    assert right(Scaled(5.0)) == first + 1
    hooked = Scaled(1.0)
    hooked.register_forward_pre_hook(lambda _, given: (given[0] / 10,))
    assert right(hooked) == first + 2
    constant = Scaled(1.0)
    constant.register_forward_hook(lambda *given: given[2] + torch.tensor([1.0, 2.0, 3.0]))
    another = Scaled(1.0)
    another.register_forward_hook(lambda *given: given[2] + torch.tensor([3.0, 2.0, 1.0]))
    assert right(another) == right(constant) - 1


def test_a_mode_has_its_own_code() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))
    batch, targets = torch.randn(4, 4), torch.randint(0, 3, (4,))
    engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=1e6, compiled=True)
    noisy = [engine.clipped_sum(batch, targets).gradients["1.weight"] for _ in range(2)]
    model.eval()
    quiet = [engine.clipped_sum(batch, targets).gradients["1.weight"] for _ in range(2)]
    assert not torch.equal(*noisy)
    assert torch.equal(*quiet)


def test_tracing_draws_nothing() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))
    batch, targets = torch.randn(4, 4), torch.randint(0, 3, (4,))
    found = []
    for _ in range(2):
        engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=1e6, compiled=True)
        for _ in range(2):  # the first time it is traced
            torch.manual_seed(3)
            found.append(engine.clipped_sum(batch, targets).gradients["1.weight"])
    assert all(torch.equal(each, found[0]) for each in found)


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


def test_a_norm_whose_rows_are_not_records_is_refused() -> None:
    class Frames(nn.Module):
        def __init__(self, norm: nn.Module) -> None:
            super().__init__()
            self.norm, self.head = norm, nn.Linear(8, 3)

        def forward(self, given: Tensor) -> Tensor:
            frames = self.norm(given.reshape(-1, 8, 2, 2))
            return self.head(frames.reshape(len(given), -1, 8, 4).mean(dim=(1, 3)))

    batch, targets = torch.randn(3, 16, 2, 2), torch.randint(0, 3, (3,))
    for norm in (nn.GroupNorm(4, 8), TiedGroupNorm(4, 2, 2)):
        with pytest.raises(NotCoveredError, match="records must be the first dimension"):
            made(FusedEngine, Frames(norm)).clipped_sum(batch, targets)


def test_whoever_derives_from_a_tied_layer_is_on_their_own() -> None:
    class Strided(LiftingConvolution):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images)[:, :, ::2, ::2]

    class WithBias(LiftingConvolution):
        def __init__(self) -> None:
            super().__init__(2, 3, SQUARE)
            self.bias = nn.Parameter(torch.zeros(3))

    batch, targets = torch.randn(3, 2, 6, 6), torch.randint(0, 3, (3,))
    for body in (Strided(2, 3, SQUARE), WithBias()):
        with pytest.raises(NotCoveredError):
            made(FusedEngine, Flat(body, 24)).clipped_sum(batch, targets)


def test_group_convolutions_of_images_that_are_not_square() -> None:
    torch.manual_seed(10)
    model = Flat(nn.Sequential(LiftingConvolution(2, 3, SQUARE), nn.Mish(), GroupConvolution(3, 2, SQUARE)), 16)
    batch, targets = torch.randn(3, 2, 8, 5), torch.randint(0, 3, (3,))
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(made(FusedEngine, model).clipped_sum(batch, targets).gradients, wanted)


def test_a_frozen_traced_part_is_no_obstacle() -> None:
    torch.manual_seed(11)
    frozen = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4))
    for parameter in frozen.parameters():
        parameter.requires_grad_(False)
    model = nn.Sequential(frozen, nn.Linear(4, 3))
    batch, targets = torch.randn(5, 4), torch.randint(0, 3, (5,))
    _, wanted = plain_loop(model, batch, targets, 0.5)
    engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


@pytest.mark.parametrize("kind", [FusedEngine, VmapEngine])
def test_a_layer_in_two_places_keeps_its_parameters(kind: type[ClippingEngine]) -> None:
    torch.manual_seed(4)
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(4, 3))
    before = list(model.parameters())
    batch, targets = torch.randn(5, 4), torch.randint(0, 3, (5,))
    _, wanted = plain_loop(model, batch, targets, 0.5)
    for _ in range(2):
        assert_same(made(kind, model).clipped_sum(batch, targets).gradients, wanted)
        assert [*map(id, model.parameters())] == [*map(id, before)]


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3)),
        nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.Dropout(0.1, inplace=True), nn.Flatten(), nn.Linear(64, 3)),
        nn.Sequential(nn.GroupNorm(1, 1), nn.Dropout(0.1, inplace=True), nn.Flatten(), nn.Linear(36, 3)),
    ],
    ids=["relu", "dropout", "norm"],
)
def test_changes_in_place_right_after_the_first_layer(model: nn.Module) -> None:
    batch, targets = torch.randn(5, 1, 6, 6), torch.tensor([0, 1, 2, 0, 1])
    engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
    assert engine.name == "fused"
    model.train()
    engine.clipped_sum(batch, targets)
    model.eval()
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


def test_one_embedding_that_skips_an_index_in_one_of_two_places() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.head = (
                nn.Embedding(10, 4, padding_idx=7),
                nn.Embedding(10, 4),
                nn.Linear(4, 3),
            )
            self.second.weight = self.first.weight

        def forward(self, given: Tensor) -> Tensor:
            return self.head((torch.tanh(self.first(given)) + self.second(given) ** 2).mean(1))

    torch.manual_seed(3)
    batch, targets = torch.randint(0, 10, (8, 5)), torch.randint(0, 3, (8,))
    batch[:, 0] = 7
    model = Twice()
    model.first.weight.data.normal_()
    norms, wanted = plain_loop(model, batch, targets, 0.5)
    engine = made(FusedEngine, model)
    torch.testing.assert_close(engine.record_norms(batch, targets).double(), norms, rtol=1e-4, atol=1e-6)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


class CountsRows(nn.Module):
    """Writes down how many records it has seen, which no noise covers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.seen += len(inputs)
        return self.linear(inputs)


class ScalesByTheBatch(CountsRows):
    def forward(self, inputs: Tensor) -> Tensor:
        return self.linear(inputs) / len(inputs)


@pytest.mark.parametrize("kind", ENGINES)
def test_models_that_depend_on_the_number_of_records_are_refused(kind: str) -> None:
    sample = torch.randn(4, 4), torch.randint(0, 3, (4,))
    with pytest.raises(MixesRecords, match="buffer seen depends on how many records"):
        engine_for(CountsRows(), cross_entropy, max_grad_norm=1.0, sample=sample, name=kind)
    with pytest.raises(MixesRecords, match="another loss in a batch of 1 than in one of 4"):
        engine_for(ScalesByTheBatch(), cross_entropy, max_grad_norm=1.0, sample=sample, name=kind)


@pytest.mark.parametrize("kind", [FusedEngine, OpacusEngine])
def test_buffers_are_as_they_were_after_a_sum(kind: type[ClippingEngine]) -> None:
    # The vmap engine refuses a model that changes a buffer.
    model = CountsRows().train()
    kind(model=model, loss=cross_entropy, max_grad_norm=1.0).clipped_sum(torch.randn(4, 4), torch.randint(0, 3, (4,)))
    assert float(model.seen) == 0
