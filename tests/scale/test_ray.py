"""Ray workers choose, id for id, whom one process chooses: also when they are killed, and when they fail."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from large_campaigns import create
from large_pools import COLUMNS, chosen_in_memory, job_for, selections, write_pool

from dpal.campaign.block_worker import BlockWorker, ScoredBlock
from dpal.campaign.facts import Selected
from dpal.campaign.large_selection import choose_from_blocks
from dpal.campaign.pool_workers import pool_workers
from dpal.data.parquet import ParquetTable
from dpal.errors import RecordsChanged
from dpal.randomness import SealedRandomness

pytestmark = [pytest.mark.usefixtures("ray_here"), pytest.mark.filterwarnings("ignore")]
KEY = bytes(range(32))
ROWS = 200_000


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("large") / "pool", ROWS)


@pytest.mark.parametrize("kind", ["cut", "threshold", "random"])
@pytest.mark.parametrize("kill", [False, True])
def test_two_workers_choose_whom_memory_chooses(
    pool: Path, kind: str, kill: bool, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selection = selections(ROWS, 500)[kind]
    plain = chosen_in_memory(pool, selection, KEY)
    processes: list[int] = []
    killed: list[int] = []
    true = ScoredBlock.add_to

    def watching(block: ScoredBlock, counts: np.ndarray) -> None:
        true(block, counts)
        processes.append(block.process)
        if kill and not killed:
            killed.append(block.process)
            os.kill(block.process, signal.SIGKILL)

    monkeypatch.setattr(ScoredBlock, "add_to", watching)
    randomness = SealedRandomness(KEY)
    job = job_for(ParquetTable.open(str(pool), COLUMNS), selection, randomness)
    found = choose_from_blocks(job, randomness=randomness, scratch=scratch, workers=2).chosen
    assert found.to_label.tolist() == plain.to_label.tolist() and found.retired.tolist() == plain.retired.tolist()
    assert found.threshold == plain.threshold and len(found.to_label) > 300
    assert os.getpid() not in processes and len(processes) == len(job.table.blocks)
    assert len(killed) == kill and not scratch.exists()


def test_a_failure_in_a_worker_is_the_error_itself(pool: Path, scratch: Path) -> None:
    randomness = SealedRandomness(KEY)
    table = ParquetTable.open(str(pool), COLUMNS)
    expected = (bytes(32),) * len(table.blocks)
    job = job_for(table, selections(ROWS, 500)["cut"], randomness, expected=expected)
    with pytest.raises(RecordsChanged, match="Row group"):
        choose_from_blocks(job, randomness=randomness, scratch=scratch, workers=2)
    assert not scratch.exists()


def test_no_more_tasks_wait_than_stated(pool: Path) -> None:
    randomness = SealedRandomness(KEY)
    job = job_for(ParquetTable.open(str(pool), COLUMNS), selections(ROWS, 500)["cut"], randomness)
    handed_out: list[int] = []

    def tasks():
        for block in job.table.blocks:
            handed_out.append(block.number)
            yield (block,)

    with pool_workers(BlockWorker, job, 2) as at_work:
        for done, _ in enumerate(at_work.each("score", tasks()), start=1):
            assert len(handed_out) <= done + 4
    assert len(handed_out) == len(job.table.blocks)


def test_a_campaign_with_workers_selects_what_one_without_selects(tmp_path: Path) -> None:
    folder = write_pool(tmp_path / "pool", 20_000, row_group=3000)
    chosen = []
    for workers in (0, 2):
        campaign = create(tmp_path / str(workers), folder, options={"workers": workers})
        campaign.run()
        assert campaign.verify().holds and campaign.status().stage == "finished"
        facts = [entry.fact for entry in campaign.reader.recorded]
        chosen.append([(fact.to_label, fact.threshold) for fact in facts if isinstance(fact, Selected)])
    assert chosen[0] == chosen[1] and len(chosen[0]) == 2
