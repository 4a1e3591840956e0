"""A pool whose decoded images are in one memory map on disk: decoded once, read many times."""

import hashlib
import os
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from dpal.data.pool import Pool
from dpal.data.records import ArrayRecords
from dpal.errors import BadData, DpalError

_CHUNK = 1024


def as_memory_map(pool: Pool, folder: Path | str) -> Pool:
    """The same pool with its records in a .npy file in this folder, built on the first call, whole or not at all.

    The file's name contains a hash of the ids, the shape and the state of the source files, so another pool, another
    size or changed images get another file.
    """
    form = pool.records.form
    if set(form) != {""}:
        raise BadData("Only records of one array, such as images, can be kept in a memory map.")
    dtype, shape = form[""].dtype, (len(pool), *form[""].shape)
    facts = (pool.fingerprint(), pool.records.stamp(), str(shape), str(dtype))
    key = hashlib.sha256("|".join(facts).encode()).hexdigest()[:16]
    place = Path(folder) / f"{Path(pool.name).stem}-{'x'.join(str(side) for side in shape[1:])}-{key}.npy"
    if not place.is_file():
        try:
            _build(pool, place, dtype, shape)
        except OSError as error:
            raise DpalError(
                f"The memory map {place} cannot be written ({error.strerror}). Nothing was written. It needs "
                f"{pool.records.bytes_each * len(pool):,} bytes in a folder that can be written to."
            ) from error
    try:
        stored = np.load(place, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise BadData(f"{place} is broken ({type(error).__name__}). Remove it, and it will be built again.") from error
    if stored.shape != shape or stored.dtype != dtype:
        raise BadData(f"{place} holds {stored.dtype} of {stored.shape} instead of {dtype} of {shape}. Remove it.")
    return replace(pool, records=ArrayRecords(stored))


def _build(pool: Pool, place: Path, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> None:
    """Written as a plain file: on a full disk, writing to a memory map would kill the process silently."""
    place.parent.mkdir(parents=True, exist_ok=True)
    # A unique name, since other threads and machines may be building the same map.
    draft = place.with_name(f"{place.name}.{uuid.uuid4().hex}.draft")
    starts = range(0, len(pool), _CHUNK)
    try:
        with draft.open("xb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for start in track(
                starts, description=f"decoding {pool.name}", console=Console(stderr=True), transient=True
            ):
                values = pool.records.read(np.arange(start, min(start + _CHUNK, len(pool))))
                file.write(np.asarray(values).tobytes())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
