"""Scores on a public grid: one pass over an array, a memory map or chunks, two bytes per record afterwards."""

import math
import mmap
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument

Scores: TypeAlias = NDArray[np.floating] | Iterable[NDArray[np.floating]]
Grid: TypeAlias = NDArray[np.uint16]

_CHUNK = 1 << 20


def on_grid(scores: Scores, *, highest: float, steps: int, round_up: bool = False) -> Grid:
    """Each score as a whole number of steps from 0 (a blank's) to `steps` (at or above `highest`), rounded down or up.

    A score that is not finite counts as 0. It is not an error: an error would reveal that there is such a record.
    """
    if not 0 < highest < math.inf:
        raise InvalidArgument("the highest score", highest, "a finite number above 0")
    if isinstance(scores, np.ndarray):
        _check_chunk(scores)
        grid = np.empty(len(scores), dtype=np.uint16)
        start = 0
        for chunk in _chunks(scores):
            grid[start : start + len(chunk)] = _rounded(chunk, highest, steps, round_up)
            start += len(chunk)
        return grid
    parts: list[Grid] = []
    for chunk in scores:
        _check_chunk(chunk)
        parts.append(_rounded(chunk, highest, steps, round_up))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint16)


def _check_chunk(chunk: object) -> None:
    # Only shape and type are named: values are private.
    if not isinstance(chunk, np.ndarray):
        raise InvalidArgument("scores", type(chunk).__name__, "a numpy array, or an iterator of such arrays")
    if chunk.ndim != 1 or chunk.dtype.kind not in "fiu":
        described = f"an array of shape {chunk.shape} and type {chunk.dtype}"
        raise InvalidArgument("scores", described, "one number for each record")


def _chunks(scores: NDArray[np.floating]) -> Iterator[NDArray[np.floating]]:
    mapped = scores.base
    read_only_map = isinstance(scores, np.memmap) and scores.mode == "r" and isinstance(mapped, mmap.mmap)
    for start in range(0, len(scores), _CHUNK):
        yield scores[start : start + _CHUNK]
        if read_only_map and isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            # Pages once read are let go, or a pool larger than memory would fill it.
            mapped.madvise(mmap.MADV_DONTNEED)


def _rounded(chunk: NDArray[np.floating], highest: float, steps: int, round_up: bool) -> Grid:
    if isinstance(chunk, np.ma.MaskedArray):
        chunk = chunk.filled(0)
    with np.errstate(all="ignore"):
        exact = np.array(chunk, dtype=np.float64)
        exact[~np.isfinite(exact)] = 0.0
        np.clip(exact, 0.0, highest, out=exact)
        exact /= highest
        exact *= steps
        if round_up:
            np.ceil(exact, out=exact)
    return exact.astype(np.uint16)
