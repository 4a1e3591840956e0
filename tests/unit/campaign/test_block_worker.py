"""One block: its scores do not depend on its company, and a changed row group is refused before anything is chosen."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from large_pools import COLUMNS, job_for, selections, write_pool

from dpal.campaign.block_look import BlockLooker, Look
from dpal.campaign.block_worker import BlockWorker, Job, read_stream
from dpal.data import parquet
from dpal.data.parquet import Block, ParquetTable
from dpal.errors import RecordsChanged
from dpal.randomness import SealedRandomness

KEY = bytes(range(32))
ROWS = 3000


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("large") / "pool", ROWS, row_group=700)


def job(pool: Path, kind: str = "cut", **options) -> Job:
    table = ParquetTable.open(str(pool), COLUMNS)
    return job_for(table, selections(ROWS, 100)[kind], SealedRandomness(KEY), **options)


def prints(pool: Path) -> tuple[bytes, ...]:
    table = ParquetTable.open(str(pool), COLUMNS)
    nothing = np.empty((0, 2), dtype=np.uint64)
    looker = BlockLooker(Look(table=table, key=KEY, held_out_ids=nothing, held_out_prints=frozenset()))
    return tuple(looker.look(block).digest for block in table.blocks)


def test_a_task_that_is_done_again_gives_the_same_bits(pool: Path) -> None:
    given = job(pool)
    block = given.table.blocks[1]
    first, again = BlockWorker(given).score(block), BlockWorker(job(pool)).score(block)
    assert first.grid.tolist() == again.grid.tolist() and first.records == again.records == block.rows
    assert first.counts.tolist() == again.counts.tolist() and first.candidates.tolist() == again.candidates.tolist()
    counts = np.zeros(given.selection.candidates, dtype=np.int64)
    first.add_to(counts)
    assert counts.sum() == block.rows
    bound = 4096 * int(np.quantile(first.grid, 0.9))
    taken = [BlockWorker(given).take(block, first.grid, bound) for _ in range(2)]
    assert taken[0].rows == taken[1].rows and len(taken[0].places) > 20
    rows = pq.ParquetFile(block.file).read_row_group(block.row_group).take(taken[0].places)
    assert read_stream(taken[0].rows).select(["id", "features"]).equals(rows.select(["id", "features"]))
    assert (first.grid[taken[0].places] >= bound // 4096).all()
    nobody = BlockWorker(given).take(block, first.grid, 256 * 4096)
    assert len(nobody.places) == 0 and read_stream(nobody.rows) is None


@pytest.mark.parametrize("kind", ["cut", "threshold", "random"])
def test_excluded_records_take_no_part(pool: Path, kind: str) -> None:
    block = job(pool).table.blocks[0]
    ids = pq.ParquetFile(block.file).read_row_group(0).column("id").to_pylist()
    given = job(pool, kind, excluded=tuple(ids[100:400]))
    scored = BlockWorker(given).score(block)
    assert scored.records == block.rows - 300 and scored.counts.sum() <= block.rows - 300
    assert (scored.grid[100:400] == 0).all()
    bound = {"cut": 4096, "threshold": 1, "random": (1 << 16) - 1}[kind]
    taken = BlockWorker(given).take(block, scored.grid, bound).places
    assert len(taken) and not ((taken >= 100) & (taken < 400)).any()


def test_a_changed_row_group_is_refused(tmp_path: Path) -> None:
    folder = write_pool(tmp_path / "pool", ROWS, row_group=700)
    expected = prints(folder)
    given = job(folder, expected=expected, key=KEY)
    grids = [BlockWorker(given).score(block).grid for block in given.table.blocks]
    # The same file with one bit of one row changed.
    write_pool(tmp_path / "other", ROWS, row_group=700, seed=1)
    file = Path(given.table.blocks[0].file)
    file.write_bytes((tmp_path / "other" / file.name).read_bytes())
    for refused in (
        lambda: BlockWorker(given).score(given.table.blocks[0]),
        lambda: BlockWorker(given).take(given.table.blocks[0], grids[0], 4096),
    ):
        with pytest.raises(RecordsChanged, match=f"Row group 0 of {file} is not as it was"):
            refused()
    # Other files are as they were. Without fingerprints, nothing would be noticed: the twin.
    BlockWorker(given).score(given.table.blocks[-1])
    BlockWorker(job(folder)).score(given.table.blocks[0])


def test_a_broken_read_starts_the_block_again(pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(parquet, "ROWS_AT_A_TIME", 512)
    given = job(pool)
    whole = BlockWorker(given).score(given.table.blocks[0])
    true, breaks = ParquetTable.read, [1, 0]

    def breaking(self: ParquetTable, block: Block, *, only_ids: bool = False):
        yield from list(true(self, block, only_ids=only_ids))[:1]
        if breaks.pop(0):
            raise OSError("connection lost")
        yield from list(true(self, block, only_ids=only_ids))[1:]

    monkeypatch.setattr(ParquetTable, "read", breaking)
    broken = BlockWorker(given).score(given.table.blocks[0])
    assert broken.counts.tolist() == whole.counts.tolist() and breaks == []


def test_ids_that_change_between_two_reads_of_a_block_are_refused(pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids that coins were drawn for must be those of the rows that are taken."""
    given = job(pool, expected=prints(pool), key=KEY)
    block = given.table.blocks[0]
    grid, true = BlockWorker(given).score(block).grid, ParquetTable.read

    def sorted_meanwhile(self: ParquetTable, block: Block, *, only_ids: bool = False):
        for table in true(self, block, only_ids=only_ids):
            yield table.sort_by("id") if only_ids else table

    monkeypatch.setattr(ParquetTable, "read", sorted_meanwhile)
    with pytest.raises(RecordsChanged, match="Row group 0"):
        BlockWorker(given).take(block, grid, 4096 * int(np.quantile(grid, 0.9)))
