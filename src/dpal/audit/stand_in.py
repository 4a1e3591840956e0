"""Labelled records that stand in for a pool, and what a plan's training makes of any part of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from torch import nn

from dpal.audit.attack import Target
from dpal.data import load_dataset
from dpal.data.records import ArrayRecords
from dpal.errors import InvalidArgument
from dpal.planning.plan import Plan
from dpal.randomness import Randomness
from dpal.training.learner import Learner
from dpal.training.sampling import BLANK
from dpal.training.settings import ComputeSettings, TrainingSettings

_SEED = 0
# So narrow that hardly any digit is close to another: a linear model can learn each by heart.
_WIDTH, _LENGTH_SCALE = 1024, 0.4
# Of every row: gradients are longer than a clip of 1, as they are with a head on an encoder.
ROW_NORM = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandIn:
    """Records with one class each, and a function that makes a new model for them."""

    inputs: NDArray[np.generic] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    make_model: Callable[[], nn.Module]

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels) or len(self.labels) < 2:
            raise InvalidArgument("the number of labels", len(self.labels), f"{len(self.inputs):,}, and at least 2")

    def __len__(self) -> int:
        return len(self.labels)


def memorable_digits() -> StandIn:
    """The embedded digits as random cosines, with a linear model: what one record teaches stays its own.

    Random Fourier features (Rahimi and Recht 2007) of a narrow kernel. To find out what a plan lets through takes a
    model that would show everything.
    """
    pixels, labels = digits()
    generator = np.random.default_rng(_SEED)
    directions = generator.normal(size=(pixels.shape[1], _WIDTH)) / _LENGTH_SCALE
    rows = np.cos(pixels @ directions + generator.uniform(0, 2 * np.pi, _WIDTH))
    rows *= ROW_NORM / np.linalg.norm(rows, axis=1, keepdims=True)
    return StandIn(inputs=rows.astype(np.float32), labels=labels, make_model=lambda: linear_model(_WIDTH, 10))


def digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The embedded digits as rows from 0 to 1, and their classes."""
    pool = load_dataset("digits")
    images = np.asarray(pool.records.read(np.arange(len(pool.ids))))
    return images.reshape(len(images), -1) / 255, np.asarray(pool.labels, dtype=np.int64)


def linear_model(width: int, classes: int) -> nn.Module:
    """One linear layer that prefers no class before anything is learnt."""
    layer = nn.Linear(width, classes, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def seats(plan: Plan, records: int, randomness: Randomness) -> list[NDArray[np.int64]]:
    """Who sits in which group: the plan's sizes, in proportion where there are fewer records than it labels."""
    sizes = [group.size for group in plan.groups]
    share = min(1.0, records / sum(sizes))
    order = np.argsort(randomness.integers(2**32, records), kind="stable")
    ends = np.floor(np.cumsum(sizes) * share + 1e-9).astype(np.int64)
    return np.split(order[: ends[-1]], ends[:-1])


def new_learner(target: Target, stand_in: StandIn) -> Learner:
    """A model that has learnt nothing yet, with the settings of a campaign."""
    return Learner(
        stand_in.make_model(),
        ArrayRecords(stand_in.inputs),
        multi_label=False,
        settings=TrainingSettings(max_grad_norm=target.max_grad_norm),
        compute=ComputeSettings(device=target.device, engine=target.engine, precision=target.precision),
    )


def train(
    learner: Learner,
    plan: Plan,
    labels: NDArray[np.int64],
    groups: list[NDArray[np.int64]],
    present: NDArray[np.bool_],
    randomness: Randomness,
) -> None:
    """The plan's phases with these groups, by the code that trains in campaigns. An absent record is a blank seat."""
    for phase in plan.phases:
        rates = phase.sampling_probabilities
        expected = sum(rate * len(group) for rate, group in zip(rates, groups, strict=False))
        learner.train(
            # The draw has a size of its own here: the plan's rates, of these groups.
            replace(phase, expected_batch_size=max(1.0, expected)),
            [np.where(present[group], group, BLANK) for group in groups[: len(rates)]],
            labels,
            randomness=randomness,
            description="attacking the exported model",
            after_step=lambda step: None,
        )


def exported_logits(learner: Learner) -> NDArray[np.float64]:
    """What the exported model, with averaged weights, says of every record of the stand-in."""
    return learner.logits_of(learner.records).astype(np.float64)


def label_margin(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """The logit of the confidence in the right class: log p − log(1 − p), without ever forming p."""
    rows = np.arange(len(labels))
    others = logits.copy()
    others[rows, labels] = -np.inf
    return logits[rows, labels] - np.asarray(logsumexp(others, axis=1))
