"""One phase: what it computes, what it refuses, and that no record decides how it runs."""

import logging

import numpy as np
import pytest
import torch
from networks import NETWORKS, SmallTransformer
from numpy.typing import NDArray
from phases import phase, run, seeded, two_clouds
from small_units import plain_units, ragged
from torch import Tensor, nn

from dpal.errors import DpalError, InvalidArgument, TrainingDiverged
from dpal.planning.plan import Phase
from dpal.training.sampling import BLANK
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource, source_for


def test_it_learns() -> None:
    source = two_clouds()
    torch.manual_seed(1)
    model = nn.Linear(4, 2)
    result = run(model, source, phase(steps=60))
    accuracy = (model(source.inputs).argmax(1) == source.targets).float().mean()
    assert accuracy > 0.9
    assert (result.steps, result.engine, result.not_finite) == (60, "fused", 0)


def test_a_seed_repeats_it_and_physical_batches_do_not_matter() -> None:
    source = two_clouds()
    weights = []
    for most in (512, 512, 7, 1):
        torch.manual_seed(1)
        model = nn.Linear(4, 2)
        run(model, source, phase(noise=1.0), compute=ComputeSettings(max_physical_batch_size=most))
        weights.append(model.weight.detach().clone())
    assert torch.equal(weights[0], weights[1])
    for other in weights[2:]:
        torch.testing.assert_close(other, weights[0], rtol=1e-5, atol=1e-7)


def test_the_sum_is_divided_by_the_planned_size_not_the_drawn_one() -> None:
    source = two_clouds(10)
    steps = []
    for batch in (5.0, 50.0):
        torch.manual_seed(1)
        model = nn.Linear(4, 2)
        before = model.weight.detach().clone()
        run(model, source, phase(steps=1, rates=(1.0,), batch=batch))
        steps.append(model.weight.detach() - before)
    torch.testing.assert_close(steps[0], 10 * steps[1], rtol=1e-4, atol=1e-7)


def test_the_default_device_does_not_matter() -> None:
    source, model = two_clouds(), nn.Linear(4, 2)
    with torch.device("meta"):
        assert run(model, source, phase(steps=1)).engine == "fused"


def test_an_empty_draw_still_takes_a_noisy_step() -> None:
    model = nn.Linear(4, 2)
    before = model.weight.detach().clone()
    run(model, two_clouds(), phase(steps=1, noise=1.0, rates=(0.0,)))
    assert not torch.equal(model.weight, before)


def test_broken_gradients_are_counted_and_many_are_warned_of_but_never_stop_the_phase(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = two_clouds(200)
    source.inputs[:5] = float("nan")
    model = nn.Linear(4, 2)
    result = run(model, source, phase(steps=4, rates=(1.0,)), groups=[np.arange(5, 200), np.arange(5)][:1])
    assert result.not_finite == 0
    result = run(model, source, phase(steps=4, rates=(1.0,)), groups=[np.arange(199, -1, -1)])
    assert result.not_finite == 20
    assert torch.isfinite(model.weight).all()
    assert not caplog.records
    # Whether a phase ends must not depend on anybody's record.
    source.inputs[:50] = float("nan")
    result = run(model, source, phase(steps=4, rates=(1.0,)), groups=[np.arange(199, -1, -1)])
    assert (result.steps, result.not_finite) == (4, 200)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_training_that_diverges_stops() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    settings = {"optimizer": torch.optim.SGD(model.parameters(), lr=1e30)}
    with pytest.raises(TrainingDiverged, match=r"diverged by step 10: .* Lower the learning rate"):
        run(model, two_clouds(50), phase(steps=30, rates=(1.0,)), groups=[np.arange(50)], **settings)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_no_record_decides_the_engine(precision: str) -> None:
    """Records whose squares overflow make engines disagree; that must not choose between them."""
    engines: list[str] = []
    for first in (0.0, 1e21):
        torch.manual_seed(1)
        images = torch.randn(20, 1, 8, 8)
        images[0] = first
        layers = (nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
        source = TensorSource(images, torch.arange(20) % 2)
        result = run(model, source, phase(steps=1), compute=ComputeSettings(precision=precision))
        engines.append(result.engine)
    assert engines == ["fused", "fused"]


def test_the_sum_of_many_physical_batches_is_not_rounded_by_their_number() -> None:
    """Added up in float32, one more record would move the sum of aligned gradients by more than the bound."""
    count = 20_000
    model, seen = nn.Linear(3, 1, bias=False), []
    torch.manual_seed(1)
    inputs = torch.tensor([[1.0, 0.7, 0.3]]) + 0.1 * torch.rand(count, 3)
    source = TensorSource(inputs, torch.zeros(count))
    for group in (np.arange(count), np.arange(1, count)):
        run(
            model,
            source,
            Phase(steps=1, noise_multiplier=1e-9, expected_batch_size=1.0, sampling_probabilities=(1.0,)),
            groups=[group],
            optimizer=torch.optim.SGD([{"params": model.parameters(), "lr": 0.0}]),
            settings=TrainingSettings(max_grad_norm=0.5),
            compute=ComputeSettings(max_physical_batch_size=8),
            after_step=lambda step: seen.append(model.weight.grad.double().clone()),
            loss=lambda outputs, targets: outputs[:, 0] - targets,
        )
    # What is left is the rounding of the noisy gradient itself, after the noise.
    assert abs(float((seen[0] - seen[1]).norm()) - 0.5) < 1e-3


def test_batches_of_named_tensors() -> None:
    torch.manual_seed(0)
    source = TensorSource({"input_ids": torch.randint(1, 11, (20, 6))}, torch.randint(0, 3, (20,)))
    result = run(SmallTransformer(), source, phase(steps=2))
    assert result.engine == "fused"
    with pytest.raises(InvalidArgument, match="number of targets is 3"):
        TensorSource(torch.zeros(4, 2), torch.zeros(3))


def test_no_labelled_records_is_an_error() -> None:
    with pytest.raises(DpalError, match="no labelled record"):
        run(nn.Linear(4, 2), two_clouds(), phase(), groups=[np.empty(0, dtype=np.int64)])


def test_the_engine_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="dpal.training"):
        run(nn.Linear(4, 2), two_clouds(), phase(steps=1))
    assert "clipping engine: fused" in caplog.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["fused", "opacus", "vmap"])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("max_grad_norm", [0.1, 3.0])
def test_one_record_moves_the_weights_by_at_most_the_clip(engine: str, copies: int, max_grad_norm: float) -> None:
    # Noise of nothing, a planned batch of one, and plain SGD: the update is the clipped sum of a single large gradient.
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 2))
    images = 100 * torch.randn(4, 1, 8, 8)
    source = TensorSource(images, model(images).argmin(1))
    before = [each.detach().clone() for each in model.parameters()]
    settings = TrainingSettings(max_grad_norm=max_grad_norm, augmentation=Augmentation(copies=copies))
    plan = Phase(steps=1, noise_multiplier=1e-9, expected_batch_size=1.0, sampling_probabilities=(1.0, 0.0))
    run(
        model,
        source,
        plan,
        groups=[[2], [0, 1, 3]],
        settings=settings,
        compute=ComputeSettings(engine=engine),
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
    )
    moved = [new.detach() - old for new, old in zip(model.parameters(), before, strict=True)]
    distance = float(torch.cat([each.double().flatten() for each in moved]).norm())
    assert 0.99 * max_grad_norm < distance <= max_grad_norm * (1 + 1e-6)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[4], [4]], "occurs twice"),
        ([[4, 4]], "occurs twice"),
        ([[4], [-2]], "is -2"),
        ([], "no labelled record"),
        ([[]], "no labelled record"),
        ([[0.5]], "whole positions"),
    ],
)
def test_groups_have_every_record_once(groups: list[list[float]], message: str) -> None:
    with pytest.raises(DpalError, match=message):
        run(nn.Linear(4, 2), two_clouds(), phase(rates=(0.5,) * len(groups)), groups=groups)


def update_of(model: nn.Module, source: object, units: NDArray, **options: object) -> dict[str, Tensor]:
    """One step with next to no noise, in which everyone takes part: the clipped sum."""
    compute = {"max_physical_batch_size": 8, "engine": "auto", **options.pop("compute", {})}  # pyright: ignore
    seen: list[dict[str, Tensor]] = []
    run(
        model,
        source,
        Phase(steps=1, noise_multiplier=1e-9, expected_batch_size=1.0, sampling_probabilities=(1.0,)),
        groups=options.pop("groups", [np.arange(len(units))]),
        units=units,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        compute=ComputeSettings(**compute),
        after_step=lambda step: seen.append({n: p.grad.double().clone() for n, p in model.named_parameters()}),
        **options,
    )
    return seen[0]


def assert_close(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    scale = max(float(each.abs().max()) for each in wanted.values())
    for name, each in wanted.items():
        torch.testing.assert_close(found[name], each, rtol=0, atol=5e-5 * scale)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["fused", "opacus", "vmap"])
@pytest.mark.parametrize("copies", [1, 2])
def test_units_train_as_a_plain_loop_over_their_records(engine: str, copies: int) -> None:
    torch.manual_seed(3)
    model, _ = NETWORKS["group norm"]()
    sizes = [1, 30, 2, 0, 7, 1, 1, 5, 12, 3]
    # The last group of records is in no unit that is drawn, and one unit has more records than a batch may hold.
    images, targets = torch.randn(sum(sizes) + 4, 4, 6, 7), torch.randint(0, 3, (sum(sizes) + 4,))
    table = ragged(sizes)
    settings = TrainingSettings(max_grad_norm=0.4, augmentation=Augmentation(copies=copies))
    for most in (8, 100, 512):
        compute = {"max_physical_batch_size": most, "engine": engine}
        found = update_of(model, TensorSource(images, targets), table, settings=settings, compute=compute)
        assert_close(found, plain_units(model, images, targets, table, 0.4))


def test_units_train_the_same_when_their_records_are_read_as_they_are_needed() -> None:
    class Records:
        bytes_each, form = 16, {"": np.zeros(4, dtype=np.float32)}

        def __len__(self) -> int:
            return 40

        def read(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
            counts.append(len(positions))
            return values[positions]

    counts: list[int] = []
    values = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    targets, table = np.arange(40) % 2, ragged([3, 1, 5, 0, 2])
    model = nn.Linear(4, 2)
    source = source_for(Records(), targets, device="cpu", most_bytes=0)
    found = update_of(model, source, table, groups=[np.array([4, 1, BLANK, 3, 0])])
    # Whole units with all their seats, so that what is read does not tell how many records there are: first for the
    # shape of synthetic records, then one unit at a time.
    assert counts == [10, 5, 5, 5]
    assert_close(found, plain_units(model, torch.from_numpy(values), torch.from_numpy(targets), table[[4, 1, 0]], 1.0))


def test_a_table_of_one_column_trains_bit_for_bit_as_without_it() -> None:
    source, order = two_clouds(), np.random.default_rng(1).permutation(100)
    weights = []
    for units, groups in ((None, [order[:60], order[60:]]), (order[:, None], [np.arange(60), np.arange(60, 100)])):
        torch.manual_seed(1)
        model = nn.Linear(4, 2)
        run(model, source, phase(noise=1.0, rates=(0.5, 0.3)), groups=groups, units=units, randomness=seeded())
        weights.append(model.weight.detach().clone())
    assert torch.equal(*weights)


def test_what_a_unit_without_records_leaves_is_a_blank() -> None:
    source, table = two_clouds(12), ragged([3, 2, 0, 4])
    weights = []
    for groups in ([[0, 2, 3]], [[0, BLANK, 3]]):
        torch.manual_seed(1)
        model = nn.Linear(4, 2)
        run(model, source, phase(noise=1.0), groups=groups, units=table)
        weights.append(model.weight.detach().clone())
    assert torch.equal(*weights)
    with pytest.raises(DpalError, match="no labelled record"):
        run(nn.Linear(4, 2), source, phase(), groups=[[2]], units=table)


@pytest.mark.parametrize(
    ("groups", "table", "message"),
    [
        ([[0], [0]], ragged([2, 2]), "A unit occurs twice in the groups"),
        ([[0, 0]], ragged([2, 2]), "A unit occurs twice in the groups"),
        ([[2]], ragged([2, 2]), "a unit in groups is 2, but must be below 2"),
        ([[0, 1]], np.array([[1, 2], [2, 3]]), "A record occurs twice in the units"),
        ([[0]], np.array([[1, 100]]), "a position in units"),
    ],
)
def test_every_unit_is_in_one_group_and_every_record_in_one_unit(
    groups: list[list[int]], table: NDArray, message: str
) -> None:
    with pytest.raises(DpalError, match=message):
        run(nn.Linear(4, 2), two_clouds(), phase(rates=(0.5,) * len(groups)), groups=groups, units=table)


def test_units_with_a_broken_record_are_counted_and_do_not_train() -> None:
    source, table = two_clouds(20), ragged([3, 2, 1, 4])
    source.inputs[table[3].max()] = float("nan")
    model = nn.Linear(4, 2)
    result = run(model, source, phase(steps=3, rates=(1.0,)), groups=[np.arange(4)], units=table)
    assert result.not_finite == 3
    healthy = table.copy()
    healthy[3] = BLANK
    found, wanted = (update_of(model, source, each, groups=[np.arange(4)]) for each in (table, healthy))
    assert all(torch.equal(each, wanted[name]) for name, each in found.items())


def test_batches_of_named_tensors_in_units() -> None:
    torch.manual_seed(0)
    model = SmallTransformer()
    tokens, targets, table = torch.randint(1, 11, (20, 6)), torch.randint(0, 3, (20,)), ragged([3, 1, 0, 6])
    found = update_of(model, TensorSource({"input_ids": tokens}, targets), table)
    assert_close(found, plain_units(model, {"input_ids": tokens}, targets, table, 1.0))
