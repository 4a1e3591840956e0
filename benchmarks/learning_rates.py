"""What models from scratch learn under noise: by the noise over the largest possible signal, and by learning rate.

The digits' training part, 400 of its records kept for validation; random labels, one phase, batches of 40% of the
labels, NAdam, averaged weights, δ = 1e-4. The test part is not used: the rule for the learning rate and the threshold
of the warning were chosen with this (docs/training.md, docs/planning.md). With --quick one seed and few settings.
"""

import math
import statistics
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from _report import Report, arguments
from torch import Tensor, nn

from dpal.data import load_dataset
from dpal.models import ResNet9, SmallCNN
from dpal.planning import Phase, Schedule, noise_to_signal
from dpal.privacy import noise_multiplier_for
from dpal.privacy.accountants import accountant_named
from dpal.randomness import SeededRandomness
from dpal.training import TensorSource, TrainingSettings, cross_entropy, train_phase
from dpal.training.averaging import WeightAverage
from dpal.training.optimizers import trainable_parameters
from dpal.training.settings import learning_rate_from_scratch

LABELS, HELD_OUT, BATCH_SHARE, DELTA = 250, 400, 0.4, 1e-4
FORMER_RATE = 0.001
FACTORS = (0.5, 1.0, 2.0)
# Accuracy where classes are guessed.
CHANCE = 0.1


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, a number of steps, an ε, and how often it is trained with each learning rate."""

    model: str
    steps: int
    epsilon: float
    seeds: int = 3


CASES = (
    *(Case(model="linear", steps=100, epsilon=epsilon) for epsilon in (8, 1, 0.25)),
    *(Case(model="small-cnn", steps=25, epsilon=epsilon) for epsilon in (8, 1)),
    *(Case(model="small-cnn", steps=100, epsilon=epsilon) for epsilon in (8, 1)),
    Case(model="small-cnn", steps=300, epsilon=8, seeds=2),
    # A minute for each learning rate on a CPU.
    Case(model="resnet9", steps=25, epsilon=8, seeds=1),
)
QUICK = (Case(model="linear", steps=100, epsilon=1, seeds=1), Case(model="small-cnn", steps=25, epsilon=8, seeds=1))


def built(name: str) -> nn.Module:
    if name == "linear":
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    return SmallCNN(channels=1) if name == "small-cnn" else ResNet9(channels=1)


def phase_of(case: Case) -> Phase:
    noise = noise_multiplier_for(
        target_epsilon=case.epsilon,
        target_delta=DELTA,
        phases=((BATCH_SHARE, case.steps),),
        accountant=accountant_named("rdp"),
    )
    return Phase.of(case.steps, noise, (BATCH_SHARE,), (LABELS,))


def accuracy(images: Tensor, labels: Tensor, case: Case, phase: Phase, rate: float, seed: int) -> float:
    order = np.random.default_rng(seed).permutation(len(images))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = built(case.model)
    average = WeightAverage(model, decay=0.99)
    train_phase(
        model,
        phase,
        source=TensorSource(images, labels),
        groups=[order[:LABELS]],
        loss=cross_entropy,
        settings=TrainingSettings(learning_rate=rate),
        randomness=SeededRandomness(seed=seed, nothing_is_private=True),
        average=average,
    )
    held_out = torch.from_numpy(order[-HELD_OUT:])
    model.eval()
    with average.applied(), torch.inference_mode():
        return float((model(images[held_out]).argmax(dim=1) == labels[held_out]).float().mean())


def main() -> None:
    options = arguments(__doc__)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    report = Report(name="learning_rates", packages=("torch",))
    pool = load_dataset("digits")
    pixels = np.asarray(pool.records.read(np.arange(len(pool))), dtype=np.float32)
    images, labels = torch.from_numpy((pixels / 255 - 0.5) / 0.25), torch.from_numpy(np.asarray(pool.labels))
    gains: list[float] = []
    losses: list[float] = []
    learned: list[tuple[float, float]] = []
    for case in QUICK if options.quick else CASES:
        phase, parameters = phase_of(case), trainable_parameters(built(case.model))
        noise = noise_to_signal(Schedule(phases=(phase,), selections=()), parameters)[-1]
        ruled = learning_rate_from_scratch(parameters, case.steps)
        scores = {
            rate: [accuracy(images, labels, case, phase, rate, seed) for seed in range(case.seeds)]
            for rate in (FORMER_RATE, *(factor * ruled for factor in FACTORS))
        }
        means = {rate: statistics.fmean(values) for rate, values in scores.items()}
        error = 100 * statistics.stdev(scores[ruled]) / math.sqrt(case.seeds) if case.seeds > 1 else None
        learned.append((noise.so_far, (means[ruled] - CHANCE) / (1 - CHANCE)))
        gains.append(means[ruled] - means[FORMER_RATE])
        losses.append(max(means.values()) - means[ruled])
        report.row(
            what=f"{case.model}, {case.steps} steps, ε {case.epsilon:g}",
            parameters=parameters,
            seeds=case.seeds,
            noise_in_a_step=noise.in_a_step,
            noise_so_far=noise.so_far,
            rule=ruled,
            former_rate=100 * means[FORMER_RATE],
            half_the_rule=100 * means[0.5 * ruled],
            the_rule=100 * means[ruled],
            standard_error=error,
            twice_the_rule=100 * means[2 * ruled],
        )
    gain, loss = 100 * statistics.fmean(gains), 100 * statistics.fmean(losses)
    report.claim("points of accuracy that the rule gains over a rate of 0.001, mean", gain, "> 0", gain > 0)
    report.claim("points that the rule loses to the best of the four rates, mean", loss, "≤ 3", loss <= 3)
    least = min(share for noise_so_far, share in learned if noise_so_far <= 1)
    claim = "least share that is learned of what is above chance, with at most as much noise as signal"
    report.claim(claim, least, "> 0.5", least > 0.5)
    report.finish(options.json)


if __name__ == "__main__":
    main()
