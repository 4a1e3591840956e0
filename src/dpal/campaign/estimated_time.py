"""How long a campaign will compute on this machine, measured in a moment on synthetic records."""

import time
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.config import CampaignConfig
from dpal.campaign.parts import Parts
from dpal.data.records import ArrayRecords, Form, Records
from dpal.planning.plan import Phase, Plan
from dpal.randomness import SecureRandomness

# Networks that are built in a moment. Others may load gigabytes, or encode the whole pool first.
_MEASURED = ("small-cnn", "resnet9", "eq-resnet9")
_STEPS = 3
# A step has a price of its own, such as its noise, and one for each record: two sizes of batches tell them apart.
_FEW, _MORE = 2, 16
# With larger networks the second measurement would take too long, and the price of a step hardly counts.
_MOST_SECONDS = 20.0


def estimated_seconds(config: CampaignConfig, parts: Parts, plan: Plan) -> float | None:
    """Seconds for all phases and selections, without the time of people. None: this model is not measured.

    No record is read: a copy of the model takes a few steps on synthetic records of the pool's form.
    """
    if config.model is None or config.model.name not in _MEASURED:
        return None
    few, prediction = _measured(parts, _FEW)
    for_step, for_record = 0.0, few / _FEW
    if few * _MORE / _FEW * _STEPS < _MOST_SECONDS:
        more, prediction = _measured(parts, _MORE)
        prediction *= _FEW / _MORE
        for_record = max(0.0, more - few) / (_MORE - _FEW)
        for_step = max(0.0, few - _FEW * for_record)
    rows = parts.pool.rows_per_unit
    training = sum(phase.steps * (for_step + for_record * rows * phase.expected_batch_size) for phase in plan.phases)
    scored = parts.pool.unit_count * rows * len(plan.selections) * parts.acquisition.passes
    return training + scored * prediction / _FEW


def _measured(parts: Parts, count: int) -> tuple[float, float]:
    """Seconds of one training step with this many records, and of predicting for them."""
    classes = len(parts.pool.classes)
    learner = parts.learner(_synthetic(parts.inputs.form, count))
    targets = np.zeros((count, classes), np.float32) if parts.pool.multi_label else np.zeros(count, np.int64)
    clock: list[float] = []
    learner.train(
        Phase(steps=_STEPS, noise_multiplier=1.0, expected_batch_size=count, sampling_probabilities=(1.0,)),
        [np.arange(count)],
        targets,
        randomness=SecureRandomness(),
        description="measuring the speed",
        after_step=lambda step: clock.append(time.perf_counter()),
    )
    start = time.perf_counter()
    learner.logits(np.arange(count), passes=1, randomness=SecureRandomness())
    seconds = time.perf_counter() - start
    # The quickest step: the first ones warm up, and other programs disturb.
    return min(later - earlier for earlier, later in pairwise(clock)), seconds


def in_words(seconds: float) -> str:
    """A rough duration: nobody should rely on its last digit."""
    if seconds < 60:
        return "less than a minute"
    if seconds < 2 * 3600:
        return f"about {max(2, round(seconds / 60))} minutes"
    if seconds < 2 * 24 * 3600:
        return f"about {round(seconds / 3600)} hours"
    return f"about {round(seconds / 24 / 3600)} days"


def _synthetic(form: Form, count: int) -> Records:
    rng = np.random.default_rng(0)
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, part in form.items():
        shape = (count, *part.shape)
        highest = 256 if part.dtype == np.uint8 else 2
        numbers = rng.normal(size=shape) if part.dtype.kind == "f" else rng.integers(0, highest, shape)
        arrays[name] = numbers.astype(part.dtype)
    return ArrayRecords(arrays.get("", arrays))
