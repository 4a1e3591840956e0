"""One phase: what it computes, what it refuses, and that no record decides how it runs."""

import logging

import numpy as np
import pytest
import torch
from networks import SmallTransformer
from phases import phase, run, two_clouds
from torch import nn

from dpal.errors import DpalError, InvalidArgument, TrainingDiverged
from dpal.planning.plan import Phase
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource


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
