"""The paper's tasks: their sizes, and pools of a size of their own."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpal.data.named.registry import DATASETS
from dpal.data.sources import SOURCES
from dpal.errors import MissingData
from dpal.experiments.tasks import STAND_IN, TASKS, Task
from dpal.models.registry import MODELS
from dpal.training.optimizers import OPTIMIZERS


@pytest.mark.parametrize("task", [*TASKS.values(), STAND_IN], ids=lambda task: task.name)
def test_every_task_names_what_there_is(task: Task) -> None:
    assert task.source in {*DATASETS, *SOURCES}
    assert task.model in MODELS
    # With adaptive gradient clipping on top, where the name says so.
    assert task.optimizer.removesuffix("-agc") in OPTIMIZERS
    assert task.target_delta < 1 / task.labelling_budget * 1.01
    assert task.batch_size <= task.initial_size
    assert task.labelling_budget <= task.pool_size


def test_the_papers_labels() -> None:
    budgets = {name: task.labelling_budget for name, task in TASKS.items()}
    assert budgets["cifar10-resnet9"] == budgets["chexpert-nfnet"] == 25_000
    assert (budgets["bloodcell-resnet9"], budgets["snli-bert"]) == (2_500, 50_000)


def test_a_part_of_a_pool_is_spread_over_the_whole() -> None:
    pool = STAND_IN.pool()
    whole = replace(STAND_IN, pool_size=10**6).pool()
    assert len(pool) == 400 < len(whole)
    positions = [whole.ids.tolist().index(name) for name in pool.ids.tolist()]
    assert positions == [index * len(whole) // 400 for index in range(400)]
    # The test set is another part, and none of the pool is in it.
    assert len(STAND_IN.tested()) == 100
    assert not set(STAND_IN.tested().ids.tolist()) & set(whole.ids.tolist())


def test_files_of_tables_lie_with_the_datasets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPAL_DATA", str(tmp_path))
    with pytest.raises(MissingData, match=str(tmp_path / "bloodcell_128")):
        TASKS["bloodcell-resnet9"].pool()
