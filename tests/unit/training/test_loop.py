import io
import logging

import numpy as np
import pytest
import torch
from networks import SmallTransformer, cross_entropy
from rich.console import Console
from torch import nn

from dpal.errors import DpalError, InvalidArgument, TrainingDiverged
from dpal.models.resnet9 import ResNet9
from dpal.planning.plan import Phase
from dpal.randomness import SeededRandomness
from dpal.training.augmentation import augmented
from dpal.training.averaging import WeightAverage
from dpal.training.loop import train_phase
from dpal.training.optimizers import OPTIMIZERS, SGD_AGC, SgdWithAdaptiveClipping, make_optimizer
from dpal.training.progress import StepProgress
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource


def seeded(seed: int = 2) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


def phase(steps: int = 5, noise: float = 1e-6, rates: tuple[float, ...] = (0.5,), batch: float = 50.0) -> Phase:
    return Phase(steps=steps, noise_multiplier=noise, expected_batch_size=batch, sampling_probabilities=rates)


def two_clouds(count: int = 100) -> TensorSource:
    torch.manual_seed(0)
    targets = torch.arange(count) % 2
    return TensorSource(torch.randn(count, 4) + 3 * targets[:, None], targets)


def run(model: nn.Module, source: TensorSource, plan: Phase, **options):
    options.setdefault("groups", [np.arange(len(source))])
    options.setdefault("optimizer", torch.optim.SGD(model.parameters(), lr=0.5))
    options.setdefault("settings", TrainingSettings())
    options.setdefault("randomness", seeded())
    options.setdefault("loss", cross_entropy)
    return train_phase(model, plan, source=source, **options)


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


def test_augmented_copies() -> None:
    images = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
    generator = torch.Generator().manual_seed(0)
    flipped = augmented(images, Augmentation(copies=8, flip=True), generator)
    assert flipped.shape == (16, 3, 4, 5)
    for row, copy in enumerate(flipped):
        original = images[row // 8]
        assert torch.equal(copy, original) or torch.equal(copy, original.flip(-1))
    assert 0 < sum(torch.equal(copy, images[row // 8]) for row, copy in enumerate(flipped)) < 16
    cropped = augmented(images, Augmentation(copies=4, crop=1), generator)
    padded = nn.functional.pad(images, (1, 1, 1, 1), mode="reflect")
    for row, copy in enumerate(cropped):
        windows = [padded[row // 4, :, y : y + 4, x : x + 5] for y in range(3) for x in range(3)]
        assert any(torch.equal(copy, window) for window in windows)
    for wrong in ({"copies": 0}, {"crop": -1}):
        with pytest.raises(InvalidArgument):
            Augmentation(**wrong)


@pytest.mark.parametrize("engine", ["fused", "opacus", "vmap"])
def test_augmentation_in_a_phase(engine: str) -> None:
    torch.manual_seed(0)
    source = TensorSource(torch.randn(12, 1, 8, 8), torch.randint(0, 2, (12,)))
    settings = TrainingSettings(augmentation=Augmentation(copies=3, flip=True, crop=2))
    compute = ComputeSettings(engine=engine)
    model = ResNet9(channels=1, classes=2)
    result = run(model, source, phase(steps=1, rates=(1.0,), batch=12.0), settings=settings, compute=compute)
    assert result.engine == engine
    tokens = TensorSource(torch.randint(0, 9, (12, 6)), torch.randint(0, 2, (12,)))
    with pytest.raises(DpalError, match="is for images"):
        run(SmallTransformer(), tokens, phase(steps=1), settings=settings)


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


def test_progress_is_for_terminals_only() -> None:
    for is_terminal in (True, False):
        text = io.StringIO()
        console = Console(file=text, force_terminal=is_terminal, width=100)
        with StepProgress("phase 1", 3, console) as progress:
            for _ in range(3):
                progress.step(10.0)
        assert ("phase 1" in text.getvalue()) is is_terminal


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
