"""Scales change sizes in proportion, keep what is compared, and say that they are small."""

import pytest

from dpal.experiments.scales import FULL, SCALES
from dpal.experiments.tasks import TASKS, Task


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_full_scale_changes_nothing(task: Task) -> None:
    assert SCALES[FULL].changed(task) == task


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_task_can_be_planned_at_every_scale(scale: str, task: Task) -> None:
    changed = SCALES[scale].changed(task)
    assert changed.name == task.name
    assert 1 <= changed.batch_size <= changed.initial_size
    assert changed.labelling_budget <= changed.pool_size <= task.pool_size
    assert all(size >= 1 for size in changed.query_sizes)


def test_a_laptops_sizes_by_hand() -> None:
    small = SCALES["laptop"].changed(TASKS["cifar10-resnet9"])
    assert (small.pool_size, small.initial_size, small.batch_size) == (2_000, 400, 163)
    assert (small.query_sizes, small.epochs_of_campaign) == ((400, 120, 40, 40), 15)
    # Small pools shrink less.
    assert SCALES["laptop"].changed(TASKS["bloodcell-resnet9"]).pool_size == 1_195


def test_only_the_full_scale_may_be_compared_with_the_paper() -> None:
    for name, scale in SCALES.items():
        assert ("SMALL" in scale.words) == (name != FULL)
    assert "instead of CIFAR-10" in SCALES["smallest"].changed(TASKS["cifar10-resnet9"]).title
