"""Two passes over blocks give, id for id, what one array in memory gives."""

from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from large_pools import COLUMNS, chosen_in_memory, job_for, selections, write_pool

from dpal.campaign import large_selection
from dpal.campaign.block_worker import BlockWorker
from dpal.campaign.choosing import blank_ids
from dpal.campaign.large_selection import choose_from_blocks
from dpal.data.parquet import ParquetTable
from dpal.randomness import RecordCoins, SealedRandomness
from dpal.selection.selection import Chosen

ROWS = 6000
KEYS = [bytes([number]) * 32 for number in range(3)]
KINDS = pytest.mark.parametrize("kind", ["cut", "threshold", "random"])


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("large") / "pool", ROWS, files=3, row_group=777)


def chosen(pool: Path, kind: str, key: bytes, scratch: Path, *, size: int = 200, excluded=(), **options) -> Chosen:
    table = ParquetTable.open(str(pool), COLUMNS)
    randomness = SealedRandomness(key)
    job = job_for(table, selections(ROWS, size)[kind], randomness, excluded=excluded)
    result = choose_from_blocks(job, randomness=randomness, scratch=scratch, **options)
    names = [] if result.rows is None else result.rows.column("id").to_pylist()
    assert names == result.chosen.to_label.tolist()
    assert not scratch.exists()
    return result.chosen


def same(first: Chosen, second: Chosen) -> bool:
    pairs = [(first.to_label, second.to_label), (first.retired, second.retired)]
    return first.threshold == second.threshold and all(a.tolist() == b.tolist() for a, b in pairs)


@KINDS
def test_blocks_choose_what_memory_chooses(pool: Path, kind: str, tmp_path: Path) -> None:
    some = pq.read_table(pool).column("id").to_pylist()[:2500]
    for key in KEYS:
        for excluded in ((), tuple(some)):
            plain = chosen_in_memory(pool, selections(ROWS, 200)[kind], key, excluded=excluded)
            found = chosen(pool, kind, key, tmp_path / "s", excluded=excluded)
            assert same(found, plain) and len(plain.to_label) > 50
            assert not set(found.to_label) & set(excluded)


def test_a_surplus_is_retired_as_in_memory(pool: Path, tmp_path: Path) -> None:
    surplus = 0
    for key in KEYS:
        plain = chosen_in_memory(pool, selections(ROWS, 100)["threshold"], key)
        assert same(chosen(pool, "threshold", key, tmp_path / "s", size=100), plain)
        surplus += len(plain.retired)
    assert surplus > 0


class Backwards:
    """Hands out blocks in another order, and does each twice, as after a worker's death."""

    def __init__(self, worker: BlockWorker) -> None:
        self.worker = worker

    def each(self, method: str, tasks):
        for task in list(tasks)[::-1]:
            getattr(self.worker, method)(*task)
            yield getattr(self.worker, method)(*task)


class ForgetfulWorker(BlockWorker):
    """A planted bug: the coins of a task are drawn when it starts."""

    def score(self, block):
        object.__setattr__(self.job, "coins", RecordCoins(np.random.default_rng(len(drawn)).bytes(32)))
        drawn.append(block.number)
        return super().score(block)


drawn: list[int] = []


@KINDS
def test_order_and_repetition_change_nothing(
    pool: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = chosen_in_memory(pool, selections(ROWS, 200)[kind], KEYS[0])
    worker = [BlockWorker]

    @contextmanager
    def others(kind, job, count, *, gpu):
        yield Backwards(worker[0](job))

    monkeypatch.setattr(large_selection, "pool_workers", others)
    assert same(chosen(pool, kind, KEYS[0], tmp_path / "s"), plain)
    if kind == "cut":
        worker[0] = ForgetfulWorker
        assert not same(chosen(pool, kind, KEYS[0], tmp_path / "s"), plain)


def test_blanks_fill_up_as_in_memory(pool: Path, tmp_path: Path) -> None:
    everyone = pq.read_table(pool).column("id").to_pylist()
    heard: list[int] = []

    def blanks(records: int) -> np.ndarray:
        heard.append(records)
        return blank_ids(150)

    found = chosen(pool, "random", KEYS[0], tmp_path / "s", excluded=tuple(everyone[60:]), blanks=blanks)
    # 200 of 60 records and 150 blanks: whoever is not chosen had the same chance as a blank.
    assert heard == [60] and 50 <= len(found.to_label) <= 60
    assert set(found.to_label) <= set(everyone[:60])


def test_scores_are_seen_before_anything_is_decided_and_removed_even_after_a_failure(
    pool: Path, tmp_path: Path
) -> None:
    seen: list[str] = []

    def scored(scores) -> None:
        seen.append(scores.fingerprint(b"k"))
        if len(seen) == 2:
            raise RuntimeError("stopped here")

    chosen(pool, "cut", KEYS[0], tmp_path / "s", scored=scored)
    with pytest.raises(RuntimeError, match="stopped here"):
        chosen(pool, "cut", KEYS[0], tmp_path / "s", scored=scored)
    assert seen[0] == seen[1] and not (tmp_path / "s").exists()
