"""Models in which records mix are found; correct ones pass."""

import logging

import pytest
import torch
from engine_cases import SAMPLES, Body, assert_same
from networks import cross_entropy, plain_loop
from torch import Tensor, nn

from dpal.errors import InvalidArgument, MixesRecords
from dpal.training.batches import Batch
from dpal.training.engines import engine_checks
from dpal.training.engines.engine import ClippedSum, ClippingEngine, NotCoveredError
from dpal.training.engines.engine_checks import require_agreement, uneven_weights
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


def test_mixing_in_disguise_is_found() -> None:
    class CentresTheBatch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 3)

        def forward(self, given: Tensor) -> Tensor:
            out = self.body(given)
            return out - out.mean(0)

    with pytest.raises(MixesRecords, match="one record changes the loss of another"):
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
    with pytest.raises(MixesRecords, match="buffer seen depends on the number of records"):
        engine_for(CountsRows(), cross_entropy, max_grad_norm=1.0, sample=sample, name=kind)
    with pytest.raises(MixesRecords, match="different loss in a batch of 1 than in one of 4"):
        engine_for(ScalesByTheBatch(), cross_entropy, max_grad_norm=1.0, sample=sample, name=kind)


@pytest.mark.parametrize("kind", [FusedEngine, OpacusEngine])
def test_buffers_are_as_they_were_after_a_sum(kind: type[ClippingEngine]) -> None:
    # The vmap engine refuses a model that changes a buffer.
    model = CountsRows().train()
    kind(model=model, loss=cross_entropy, max_grad_norm=1.0).clipped_sum(torch.randn(4, 4), torch.randint(0, 3, (4,)))
    assert float(model.seen) == 0


def test_one_record_is_no_sample() -> None:
    sample = (torch.randn(1, 4), torch.tensor([0]))
    with pytest.raises(InvalidArgument, match="at least 2"):
        engine_for(Body(), cross_entropy, max_grad_norm=1.0, sample=sample)


class IgnoresWeights(FusedEngine):
    """Takes the mean over all rows of a unit, padding included."""

    def clipped_sum(
        self, batch: Batch, targets: Tensor, present: Tensor | None = None, weights: Tensor | None = None
    ) -> ClippedSum:
        return super().clipped_sum(batch, targets, present)

    def record_norms(self, batch: Batch, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        return super().record_norms(batch, targets)


class ClipsEachRecord(VmapEngine):
    """Clips every record of a unit and takes the weighted mean afterwards. The norms it names are right."""

    def clipped_sum(
        self, batch: Batch, targets: Tensor, present: Tensor | None = None, weights: Tensor | None = None
    ) -> ClippedSum:
        alone = VmapEngine(model=self.model, loss=self.loss, max_grad_norm=self.max_grad_norm)
        total: dict[str, Tensor] = {}
        for row in range(len(targets)):
            weight = 1 / self.copies if weights is None else float(weights[row])
            for name, each in alone.clipped_sum(batch[row : row + 1], targets[row : row + 1]).gradients.items():
                total[name] = total.get(name, 0) + weight * each
        return ClippedSum(gradients=total, not_finite=torch.zeros(()))


class MixesUnits(VmapEngine):
    """A record of the first unit changes what the second one adds."""

    def clipped_sum(
        self, batch: Batch, targets: Tensor, present: Tensor | None = None, weights: Tensor | None = None
    ) -> ClippedSum:
        result = super().clipped_sum(batch, targets, present, weights)
        leak = 1 + 0.01 * batch[0].abs().sum()
        return ClippedSum(
            gradients={name: each * leak for name, each in result.gradients.items()}, not_finite=result.not_finite
        )


def units_of_three() -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    targets = torch.randint(0, 3, (12,))
    return model, torch.randn(12, 4), targets, uneven_weights(4, 3, targets.device)


@pytest.mark.parametrize("kind", [IgnoresWeights, ClipsEachRecord])
def test_an_engine_that_does_not_average_units_before_clipping_is_turned_down(kind: type[ClippingEngine]) -> None:
    model, batch, targets, weights = units_of_three()
    engine = kind(model=model, loss=cross_entropy, max_grad_norm=1.0, copies=3)
    with pytest.raises(NotCoveredError, match="differ"):
        require_agreement(engine, engine, batch, targets, weights)


def test_an_engine_in_which_a_record_changes_another_unit_is_turned_down(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch, targets, weights = units_of_three()
    # The comparison with a loop would notice it too.
    monkeypatch.setattr(engine_checks, "_compare", lambda *_: None)
    right = VmapEngine(model=model, loss=cross_entropy, max_grad_norm=1.0, copies=3)
    require_agreement(right, right, batch, targets, weights)
    wrong = MixesUnits(model=model, loss=cross_entropy, max_grad_norm=1.0, copies=3)
    with pytest.raises(NotCoveredError, match="changes another unit's gradient"):
        require_agreement(wrong, wrong, batch, targets, weights)


def test_weights_of_the_check_differ_and_leave_rows_out() -> None:
    weights = uneven_weights(3, 4, torch.device("cpu")).reshape(3, 4)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(3))
    assert [len(set(unit.tolist())) for unit in weights] == [4, 4, 4]
    assert (weights == 0).sum(dim=1).tolist() == [0, 1, 0]
    assert uneven_weights(2, 2, torch.device("cpu")).tolist() == pytest.approx([1 / 3, 2 / 3, 1.0, 0.0])


class IgnoresWeightsOfLargeUnits(IgnoresWeights):
    def clipped_sum(
        self, batch: Batch, targets: Tensor, present: Tensor | None = None, weights: Tensor | None = None
    ) -> ClippedSum:
        return FusedEngine.clipped_sum(self, batch, targets, present, None if self.copies > 8 else weights)

    def record_norms(self, batch: Batch, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        return FusedEngine.record_norms(self, batch, targets, None if self.copies > 8 else weights)


def test_units_are_compared_with_all_their_rows_too() -> None:
    torch.manual_seed(4)
    model, batch, targets = nn.Linear(4, 3), torch.randn(24, 4), torch.randint(0, 3, (24,))
    weights = uneven_weights(2, 12, targets.device)
    right = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=1.0, copies=12)
    require_agreement(right, right, batch, targets, weights)
    wrong = IgnoresWeightsOfLargeUnits(model=model, loss=cross_entropy, max_grad_norm=1.0, copies=12)
    with pytest.raises(NotCoveredError, match="differ"):
        require_agreement(wrong, wrong, batch, targets, weights)
