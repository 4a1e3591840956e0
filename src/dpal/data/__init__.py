"""Pools of records with stable ids. This package does without torch.

Read in this order: `pool` (records by id), `units` (whom they belong to; `unit_rule` finds out), `records` (what they
are made of: arrays, texts; `images` for encoded ones), `class_labels` (labels in files become class numbers). Then
where pools come from: `arrays`, `folders`, `tables` and `hugging_face` (both through `columns`), `named` (published
datasets), `parquet` and `large_pool` (read block by block; `id_lookup` finds ids in them), and `sources`, which opens
any of them from a configuration. `tokenization`, `memory_map` and `splits` make a pool from another one. Names are
imported on first use: a campaign that is only looked at needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpal.data.arrays import from_arrays, from_numpy_file
    from dpal.data.folders import from_image_folder
    from dpal.data.hugging_face import from_hugging_face
    from dpal.data.large_pool import LargePool, from_parquet
    from dpal.data.memory_map import as_memory_map
    from dpal.data.named.registry import DATASETS, load_dataset
    from dpal.data.pool import Pool
    from dpal.data.splits import Split, split_by_id
    from dpal.data.tables import from_table
    from dpal.data.tokenization import tokenized
    from dpal.data.unit_rule import UnitRule, with_units
    from dpal.data.units import Units

__all__ = [
    "DATASETS",
    "LargePool",
    "Pool",
    "Split",
    "UnitRule",
    "Units",
    "as_memory_map",
    "from_arrays",
    "from_hugging_face",
    "from_image_folder",
    "from_numpy_file",
    "from_parquet",
    "from_table",
    "load_dataset",
    "split_by_id",
    "tokenized",
    "with_units",
]

_HOMES = {
    "DATASETS": "named.registry",
    "LargePool": "large_pool",
    "Pool": "pool",
    "Split": "splits",
    "UnitRule": "unit_rule",
    "Units": "units",
    "as_memory_map": "memory_map",
    "from_arrays": "arrays",
    "from_hugging_face": "hugging_face",
    "from_image_folder": "folders",
    "from_numpy_file": "arrays",
    "from_parquet": "large_pool",
    "from_table": "tables",
    "load_dataset": "named.registry",
    "split_by_id": "splits",
    "tokenized": "tokenization",
    "with_units": "unit_rule",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpal.data' has no attribute {name!r}")
    return getattr(import_module(f"dpal.data.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
