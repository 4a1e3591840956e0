"""The estimate of a campaign's time: from synthetic records alone, in proportion to the plan."""

import time
from dataclasses import replace

import numpy as np
import pytest

from dpal.campaign.config import checked_config
from dpal.campaign.estimated_time import estimated_seconds, in_words
from dpal.campaign.parts import parts_of
from dpal.data import from_arrays
from dpal.data.records import Positions, Values, WrappedRecords
from dpal.planning.request import plan


class Untouchable(WrappedRecords):
    """Records that must not be read."""

    def read(self, positions: Positions) -> Values:
        raise AssertionError("a record was read")


CONFIG = checked_config({"model": {"name": "small-cnn"}, "training": {"device": "cpu"}})
IMAGES = from_arrays(np.zeros((500, 1, 8, 8), dtype=np.uint8), classes=["a", "b"])
POOL = replace(IMAGES, records=Untouchable(IMAGES.records))
PLAN = plan(target_epsilon=8, pool_size=500, initial_size=100, query_sizes=[50], batch_size=20, epochs=2)


def test_no_record_is_read_and_more_steps_take_longer() -> None:
    parts = parts_of(CONFIG, pool=POOL)
    seconds = estimated_seconds(CONFIG, parts, PLAN)
    assert seconds is not None
    assert 0 < seconds < 600
    longer = replace(PLAN, phases=tuple(replace(phase, steps=1000 * phase.steps) for phase in PLAN.phases))
    many = estimated_seconds(CONFIG, parts, longer)
    assert many is not None
    assert many > 20 * seconds


def test_a_slow_model_is_noticed() -> None:
    """A planted delay of 20 ms for every record shows up in the estimate."""
    parts = parts_of(CONFIG, pool=POOL)
    make = parts.learner

    def slow(records: object) -> object:
        learner = make(records)  # type: ignore[arg-type]
        learner.model.register_forward_pre_hook(lambda module, given: time.sleep(0.02 * len(given[0])))
        return learner

    quick, delayed = (estimated_seconds(CONFIG, each, PLAN) for each in (parts, replace(parts, learner=slow)))  # type: ignore[arg-type]
    assert quick is not None
    assert delayed is not None
    assert delayed > quick + 0.02 * 500 / 2


def test_models_that_take_long_to_build_are_left_out() -> None:
    parts = parts_of(CONFIG, pool=POOL)
    for name in ("nfnet-f0", "features", "package.module:model"):
        assert estimated_seconds(checked_config({"model": {"name": name}}), parts, PLAN) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3, "less than a minute"),
        (61, "about 2 minutes"),
        (1800, "about 30 minutes"),
        (3 * 3600, "about 3 hours"),
        (3 * 86400, "about 3 days"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
