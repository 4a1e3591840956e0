"""A selection from a pool that is not in memory: one pass scores and counts, a second one takes.

What is in memory here: the counts of all candidates, one block's scores at a time, and the records that were taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import fault_points
from dpal.campaign.block_scores import BlockScores
from dpal.campaign.block_worker import BlockWorker, Job, ScoredBlock, TakenRows, read_stream
from dpal.campaign.pool_workers import Workers, pool_workers
from dpal.data.parquet import joined
from dpal.randomness import IdColumn, Randomness
from dpal.selection.by_blocks import Counts
from dpal.selection.selection import Chosen
from dpal.training.progress import counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenRows:
    """What was chosen, by id, and the rows of the records to label, in the same order, as an Arrow table."""

    chosen: Chosen
    rows: Any = field(repr=False)


def choose_from_blocks(
    job: Job,
    *,
    randomness: Randomness,
    scratch: Path,
    workers: int = 0,
    scored: Callable[[BlockScores], None] = lambda scores: None,
    blanks: Callable[[int], NDArray[np.str_]] = lambda records: np.empty(0, dtype=np.str_),
) -> ChosenRows:
    """The choice of the job's selection: the same records as `Selection.choose` on all scores at once.

    `scored` is called with the scores before anything is decided by them; `blanks` with the number of records that
    take part, for the ids of blanks to add. `randomness` must be as it was when the job's coins were made.
    """
    selection = job.selection
    scores = BlockScores(scratch, len(job.table))
    uses_gpu = job.scorer is not None and job.scorer.predictor.device.startswith("cuda")
    try:
        with pool_workers(BlockWorker, job, workers, gpu=uses_gpu) as at_work:
            counts, records = _scored(job, scores, at_work)
            scored(scores)
            fault_points.reached("select.scored")
            added = IdColumn.of(blanks(records))
            nothing = np.zeros(len(added), dtype=np.uint16)
            counts += selection.counts(nothing, added, job.coins)
            bound = selection.bound(counts, records + len(added), randomness)
            taken = _taken(job, scores, bound, at_work)
    finally:
        scores.remove()
    # As in memory: blanks come after all records.
    taken_blanks = added[np.flatnonzero(selection.taken(nothing, added, job.coins, bound))]
    return _settled(job, taken, taken_blanks, bound)


def _scored(job: Job, scores: BlockScores, at_work: Workers) -> tuple[Counts, int]:
    """How many records are at each candidate, and how many take part. Their scores go into the file."""
    blocks, total = job.table.blocks, len(job.table)
    counts, records = np.zeros(job.selection.candidates, dtype=np.int64), 0
    found: Iterator[ScoredBlock] = at_work.each("score", ((block,) for block in blocks))
    words = "scoring the pool" if job.scorer is not None else "looking through the pool"
    for block in counted(found, words, total=total, each=-(-total // len(blocks))):
        scores.write(blocks[block.number], block.grid)
        block.add_to(counts)
        records += block.records
    return counts, records


def _taken(job: Job, scores: BlockScores, bound: int, at_work: Workers) -> list[TakenRows]:
    # Each block's scores are read when its task is handed out.
    with_scores = ((block, scores.read(block)) for block in job.table.blocks)
    tasks = ((block, grid, bound) for block, grid in with_scores if job.selection.may_take(grid, bound))
    taken: list[TakenRows] = [rows for rows in at_work.each("take", tasks) if len(rows.places)]
    return sorted(taken, key=lambda rows: rows.number)


def _settled(job: Job, taken: list[TakenRows], blanks: IdColumn, bound: int) -> ChosenRows:
    tables = [read_stream(rows.rows) for rows in taken]
    table = joined(tables) if tables else None
    ids = IdColumn.joined([*([] if table is None else [job.table.rows_of_ids(table)]), blanks])
    chosen = job.selection.settled(np.arange(len(ids)), ids, job.coins, bound)
    count = len(ids) - len(blanks)
    # Blanks are dropped.
    to_label, retired = (places[places < count] for places in (chosen.to_label, chosen.retired))
    threshold = chosen.threshold
    if threshold is not None:
        threshold = threshold * job.largest / job.selection.resolution
    names = replace(chosen, to_label=ids[to_label].names(), retired=ids[retired].names(), threshold=threshold)
    if table is not None:
        table = table.take(to_label)
    return ChosenRows(chosen=names, rows=table if len(to_label) else None)
