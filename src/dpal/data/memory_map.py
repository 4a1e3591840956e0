"""Decoded once, read ever after: a pool whose images lie in one memory map on disk."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from dpal.data.pool import Pool
from dpal.data.records import ArrayRecords
from dpal.errors import BadData, InvalidArgument

_CHUNK = 1024


def as_memory_map(pool: Pool, folder: Path | str) -> Pool:
    """The same pool, its records in a .npy file in this folder, built on the first call, whole or not at all.

    The file's name holds a hash of the ids, the shape and the state of the files behind it, so another pool, another
    size or changed images get a file of their own.
    """
    first = pool.records.read(np.arange(1))
    if isinstance(first, dict):
        raise InvalidArgument("the records", "of several arrays", "of one array, such as images")
    shape = (len(pool), *first.shape[1:])
    facts = (pool.fingerprint(), pool.records.stamp(), str(shape), str(first.dtype))
    key = hashlib.sha256("|".join(facts).encode()).hexdigest()[:16]
    place = Path(folder) / f"{Path(pool.name).stem}-{'x'.join(str(side) for side in first.shape[1:])}-{key}.npy"
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f"{place.name}.{os.getpid()}.draft")
        try:
            values = np.lib.format.open_memmap(draft, mode="w+", dtype=first.dtype, shape=shape)
            starts = range(0, len(pool), _CHUNK)
            for start in track(
                starts, description=f"decoding {pool.name}", console=Console(stderr=True), transient=True
            ):
                stop = min(start + _CHUNK, len(pool))
                values[start:stop] = pool.records.read(np.arange(start, stop))
            values.flush()
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)
    stored = np.load(place, mmap_mode="r", allow_pickle=False)
    if stored.shape != shape or stored.dtype != first.dtype:
        raise BadData(f"{place} holds {stored.dtype} of {stored.shape} instead of {first.dtype} of {shape}. Remove it.")
    return replace(pool, records=ArrayRecords(stored))
