"""Membership inference with shadow models (LiRA), on models trained with and without privacy.

    python benchmarks/audit_lira.py --quick
    python benchmarks/audit_lira.py --cifar10 FOLDER --cache FOLDER --json FILE

The model is the head of "Is it worth it" in docs/planning.md: CIFAR-10, features of EfficientNet-Lite0, 2,500 labels,
ε = 8, default settings, trained by dpal's own loop and exported with averaged weights. Of 5,000 images each model gets
a random half, by coins. Who joins when is drawn at random, not by a cut; the centre of the features comes from other
images, since one record of 50,000 hardly moves it. Without privacy it is the same head, trained on the whole half at
every step to a low loss. Each model is attacked with all the others as shadow models. --quick takes the embedded
digits, and a model that learns them by heart. Features and what is left of each model are kept
in the folder of --cache, so that a run that was stopped goes on.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from _report import Report
from numpy.typing import NDArray
from scipy.stats import beta
from torch import nn

import dpal
from dpal.audit.attack import Target
from dpal.audit.membership_inference import FALSE_POSITIVE_RATES, MarginModel, area_under_curve, true_positive_rate
from dpal.audit.stand_in import StandIn, label_margin, memorable_digits, new_learner, train
from dpal.data import load_dataset
from dpal.data.records import ArrayRecords
from dpal.models.encoders import encoder_named
from dpal.models.heads import FeatureHead
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest
from dpal.randomness import SeededRandomness

EPSILON = 8.0
ATTACKED, OTHERS = 5_000, 1_000
LABELS, POOL = 2_500, 50_000
LOSS, MOST_STEPS = 0.01, 3_000
Logits = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Task:
    name: str
    stand_in: StandIn
    plan: Plan
    models: int
    # Records that no model is trained on, and their labels.
    held_out: StandIn | None = None
    # Where models are kept, so that a stopped run goes on.
    cache: Path | None = None


def quick_task() -> Task:
    plan = dpal.plan(
        target_epsilon=EPSILON,
        pool_size=1437,
        initial_size=1437,
        query_sizes=[],
        selections="released",
        selection="random",
        epochs=12,
        batch_size=240,
    )
    return Task(name="digits by heart", stand_in=memorable_digits(), plan=plan, models=8)


def cifar_task(folder: Path, cache: Path, models: int) -> Task:
    features, labels = cached_features(folder, cache)
    blocks = encoder_named("efficientnet-lite0").blocks
    attacked, others = slice(0, ATTACKED), slice(ATTACKED, ATTACKED + OTHERS)
    empty = FeatureHead(blocks, 10)
    centre = empty.before_centre(torch.from_numpy(features[others])).mean(dim=0)

    def head() -> nn.Module:
        made = FeatureHead(blocks, 10)
        made.centre.copy_(centre)
        return made

    plan = PlanRequest(target_epsilon=EPSILON, labelling_budget=LABELS).for_encoder(POOL, width=len(centre)).plan(POOL)
    return Task(
        name="CIFAR-10, EfficientNet-Lite0",
        stand_in=StandIn(inputs=features[attacked], labels=labels[attacked], make_model=head),
        plan=plan,
        models=models,
        cache=cache,
        held_out=StandIn(inputs=features[others], labels=labels[others], make_model=head),
    )


def cached_features(folder: Path, cache: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    file = cache / "features.npz"
    if not file.is_file():
        pool, encoder = load_dataset("cifar10", folder=folder), encoder_named("efficientnet-lite0")
        rows = encoder.encode(pool.records.read(np.arange(ATTACKED + OTHERS)))
        np.savez(file, features=rows.astype(np.float16), labels=np.asarray(pool.labels)[: len(rows)])
    with np.load(file) as kept:
        return kept["features"].astype(np.float32), kept["labels"].astype(np.int64)


def private_model(task: Task, present: NDArray[np.bool_], randomness: SeededRandomness) -> Callable[[StandIn], Logits]:
    """By the plan's steps, rates and noise. Twice as many seats as it has labels, of which a random half is taken."""
    sizes = [group.size for group in task.plan.groups]
    ends = np.round(np.cumsum(sizes) / sum(sizes) * len(present)).astype(np.int64)
    # The same groups for every model: the attacker may know when a record would have joined.
    groups = np.split(np.random.default_rng(1).permutation(len(present)), ends[:-1])
    learner = new_learner(Target(plan=task.plan, device="cpu"), task.stand_in)
    train(learner, task.plan, task.stand_in.labels, groups, present, randomness)
    return lambda records: learner.logits_of(ArrayRecords(records.inputs)).astype(np.float64)


def plain_model(task: Task, present: NDArray[np.bool_], randomness: SeededRandomness) -> Callable[[StandIn], Logits]:
    """The same model and records, all of them at every step, until they are nearly known by heart."""
    del randomness
    model = task.stand_in.make_model()
    inputs, targets = (torch.from_numpy(part[present]) for part in (task.stand_in.inputs, task.stand_in.labels))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(MOST_STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if loss.item() < LOSS:
            break

    def logits(records: StandIn) -> Logits:
        with torch.no_grad():
            return model(torch.from_numpy(records.inputs)).double().numpy()

    return logits


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's, exact, two-sided, 95%."""
    low = float(beta.ppf(0.025, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.ppf(0.975, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What is left of a model: the margins of all records, who was in its training, and two accuracies."""

    margins: Logits
    present: NDArray[np.bool_]
    own_accuracy: float
    other_accuracy: float


def trained(task: Task, make: Callable[..., Callable[[StandIn], Logits]], number: int) -> Trained:
    """One model with a seed of its own, from the cache if it is there."""
    file = None if task.cache is None else task.cache / f"{make.__name__}-{number}.npz"
    if file is not None and file.is_file():
        with np.load(file) as kept:
            accuracies = (float(kept["own_accuracy"]), float(kept["other_accuracy"]))
            return Trained(
                margins=kept["margins"],
                present=kept["present"],
                own_accuracy=accuracies[0],
                other_accuracy=accuracies[1],
            )
    randomness, labels = SeededRandomness(seed=number, nothing_is_private=True), task.stand_in.labels
    present = randomness.coins(Fraction(1, 2), len(labels))
    logits = make(task, present, randomness)
    outputs = logits(task.stand_in)
    right = outputs.argmax(axis=1) == labels
    others = right[~present] if task.held_out is None else logits(task.held_out).argmax(axis=1) == task.held_out.labels
    made = Trained(
        margins=label_margin(outputs, labels),
        present=present,
        own_accuracy=float(right[present].mean()),
        other_accuracy=float(others.mean()),
    )
    if file is not None:
        np.savez(file, **asdict(made))
    return made


def attacked(report: Report, task: Task, kind: str, make: Callable[..., Callable[[StandIn], Logits]]) -> float:
    """Trains all models, attacks each with the others, and adds rows. Gives the rate at 0.1% false positives."""
    started, models = time.monotonic(), list[Trained]()
    for number in range(task.models):
        models.append(trained(task, make, number))
        print(f"{kind} {number + 1} of {task.models}: {time.monotonic() - started:.0f} s", flush=True)
    table, there = np.stack([model.margins for model in models]), np.stack([model.present for model in models])
    evidence = np.stack(
        [
            MarginModel.of(np.delete(table, row, axis=0), np.delete(there, row, axis=0)).evidence(table[row])
            for row in range(task.models)
        ]
    )
    present, absent = evidence[there], evidence[~there]
    rates = {rate: true_positive_rate(present, absent, rate) for rate in FALSE_POSITIVE_RATES}
    for rate, measured in rates.items():
        low, high = interval(round(measured * len(present)), len(present))
        by_model = [
            true_positive_rate(row[inside], row[~inside], rate) for row, inside in zip(evidence, there, strict=True)
        ]
        report.row(
            what=f"{task.name}, {kind}",
            false_positives=rate,
            true_positives=measured,
            at_least=low,
            at_most=high,
            median_model=statistics.median(by_model),
            area=area_under_curve(present, absent),
            own_accuracy=statistics.fmean(model.own_accuracy for model in models),
            other_accuracy=statistics.fmean(model.other_accuracy for model in models),
            models=task.models,
        )
    return rates[FALSE_POSITIVE_RATES[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="digits, 8 models of each kind: ends within 50 s")
    parser.add_argument("--cifar10", type=Path, metavar="FOLDER", help="the official binary batches")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep features and models there")
    parser.add_argument("--models", type=int, default=32, help="of each kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write claims, rows, device and versions")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.quick and (options.cifar10 is None or options.cache is None):
        parser.error("give --cifar10 and --cache, or --quick")
    task = quick_task() if options.quick else cifar_task(options.cifar10, options.cache, options.models)
    report = Report(name="Membership inference with shadow models", packages=("torch",))
    kinds = {f"private (ε = {EPSILON:g})": private_model, "not private": plain_model}
    private, plain = (attacked(report, task, kind, make) for kind, make in kinds.items())
    words = f"{task.name}: true positives at 0.1% false positives"
    # TPR ≤ e^ε · FPR + δ.
    shown = math.log(max(private, 1e-9) / FALSE_POSITIVE_RATES[0])
    report.claim(f"{words}, private, as the ε that would explain them", shown, f"at most {EPSILON:g}", shown <= EPSILON)
    ratio = plain / max(private, 1e-9)
    report.claim(f"{words}, without privacy as a multiple of with it", ratio, "at least 3", ratio >= 3)
    report.finish(options.json, epsilon=EPSILON, steps=[phase.steps for phase in task.plan.phases])


if __name__ == "__main__":
    main()
