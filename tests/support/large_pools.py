"""Synthetic pools in Parquet, a job that selects from them, and the same selection in memory."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

from dpal.campaign.block_worker import Job, Scorer
from dpal.data.id_lookup import lookup_of
from dpal.data.parquet import ParquetTable, RowColumns
from dpal.randomness import IdColumn, SealedRandomness
from dpal.selection import CutSelection, MinimumMargin, RandomSelection, ThresholdSelection
from dpal.selection.by_blocks import BlockSelection
from dpal.selection.selection import Chosen
from dpal.training.block_prediction import BlockPredictor
from dpal.training.settings import Scaling

WIDTH = 16
CLASSES = 4
COLUMNS = RowColumns(id_column="id", features=("features",))


def write_pool(folder: Path, rows: int, *, files: int = 2, row_group: int = 10_000, seed: int = 0) -> Path:
    """Files of synthetic features, with ids in no order of their numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("id", pa.string()), ("features", pa.list_(pa.float32(), WIDTH)), ("label", pa.int64())])
    ends = np.linspace(0, rows, files + 1).astype(int)
    for number, (start, end) in enumerate(pairwise(ends)):
        with pq.ParquetWriter(folder / f"part-{number:04d}.parquet", schema, compression="none") as writer:
            for first in range(start, end, row_group):
                writer.write_table(_table(first, min(row_group, end - first), seed, schema), row_group_size=row_group)
    return folder


def _table(first: int, count: int, seed: int, schema: pa.Schema) -> pa.Table:
    rng = np.random.default_rng((seed, first))
    places = np.arange(first, first + count, dtype=np.uint64)
    # An odd multiplier: every number once.
    names = pa.array((places * np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)).cast(pa.string())
    values = rng.standard_normal(count * WIDTH, dtype=np.float32)
    features = pa.FixedSizeListArray.from_arrays(pa.array(values), WIDTH)
    return pa.Table.from_arrays([names, features, pa.array(rng.integers(0, CLASSES, count))], schema=schema)


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, CLASSES)).eval()


def selections(unlabelled: int, query_size: int) -> dict[str, BlockSelection]:
    sizes = {"query_size": query_size, "unlabelled": unlabelled}
    return {
        "cut": CutSelection(**sizes, cut_epsilon=0.5, wanted=query_size - 5),
        "threshold": ThresholdSelection.of(**sizes, choice_epsilon=1.0),
        "random": RandomSelection(**sizes),
    }


def job_for(
    table: ParquetTable,
    selection: BlockSelection,
    randomness: SealedRandomness,
    *,
    excluded: tuple[str, ...] = (),
    expected: tuple[bytes, ...] | None = None,
    key: bytes = b"",
) -> Job:
    """A job as a campaign makes it: first the seed of the scores, then the coins."""
    acquisition = MinimumMargin(classes=CLASSES)
    predictor = BlockPredictor(
        model=model(), device="cpu", precision="float32", scaling=Scaling(), seed=randomness.bytes(7)
    )
    scorer = Scorer(predictor=predictor, acquisition=acquisition, multi_label=False)
    return Job(
        table=table,
        selection=selection,
        coins=randomness.record_coins(),
        largest=selection.largest_score(acquisition.highest, acquisition.clip),
        scorer=scorer if selection.reads_scores else None,
        excluded=lookup_of(IdColumn.of(np.asarray(excluded, dtype=np.str_))),
        expected=expected,
        key=key,
    )


def chosen_in_memory(folder: Path, selection: BlockSelection, key: bytes, *, excluded: tuple[str, ...] = ()) -> Chosen:
    """The plain path: one array of ids, one of scores, and `Selection.choose`."""
    table = pq.read_table(folder)
    randomness = SealedRandomness(key)
    randomness.bytes(7)
    acquisition = MinimumMargin(classes=CLASSES)
    values = table.column("features").combine_chunks().flatten().to_numpy().reshape(-1, WIDTH).copy()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        logits = [model()(torch.from_numpy(values[start : start + 512])) for start in range(0, len(values), 512)]
    torch.set_num_threads(before)
    probabilities = torch.softmax(torch.cat(logits).double(), dim=1).numpy()
    ids = np.asarray(table.column("id").to_numpy(), dtype=np.str_)
    left = ~np.isin(ids, np.asarray(excluded, dtype=np.str_))
    return selection.choose(
        acquisition.scores(probabilities)[left],
        highest=acquisition.highest,
        clip=acquisition.clip,
        randomness=randomness,
        ids=ids[left],
    )


def head() -> nn.Module:
    """A small model for campaigns on these pools."""
    return model().train()
