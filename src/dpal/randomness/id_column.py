"""Ids as bytes in one buffer, as Arrow keeps them: a billion of them are never a billion Python objects."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdColumn:
    """Ids as UTF-8: where each starts in the buffer, and how many bytes it has."""

    data: NDArray[np.uint8] = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    lengths: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, which: slice | NDArray[np.bool_] | NDArray[np.int64]) -> "IdColumn":
        return IdColumn(data=self.data, starts=self.starts[which], lengths=self.lengths[which])

    def names(self) -> NDArray[np.str_]:
        """The ids as texts. Only for the few that were chosen."""
        whole = self.data.tobytes() if len(self) > 1000 else None
        texts: list[str] = []
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            content = self.data[start : start + length].tobytes() if whole is None else whole[start : start + length]
            texts.append(content.decode())
        return np.asarray(texts, dtype=np.str_)

    @staticmethod
    def of(names: NDArray[Any]) -> "IdColumn":
        """The column of these ids. Ids that are not texts are told apart by what they look like in Python."""
        if names.dtype.kind == "O":
            listed: list[object] = names.tolist()
            are_texts = all(isinstance(name, str) for name in listed)
            return _of_bytes([(str(name) if are_texts else f"{type(name)} {name!r}").encode() for name in listed])
        if names.dtype.kind != "U":
            return _of_bytes([repr(name).encode() for name in names.tolist()])
        width = names.dtype.itemsize // 4
        letters = np.ascontiguousarray(names).view(np.uint32).reshape(len(names), width)
        if width == 0 or letters.max(initial=0) >= 128:
            return _of_bytes([name.encode() for name in names.tolist()])
        return IdColumn(
            data=letters.astype(np.uint8).reshape(-1),
            starts=np.arange(len(names), dtype=np.int64) * width,
            lengths=np.strings.str_len(names).astype(np.int64),
        )

    @staticmethod
    def of_places(places: NDArray[np.int64]) -> "IdColumn":
        """Ids for records that have none: their places."""
        starts = np.arange(len(places), dtype=np.int64) * 8
        lengths = np.full(len(places), 8, dtype=np.int64)
        return IdColumn(data=places.astype("<i8").view(np.uint8), starts=starts, lengths=lengths)

    @staticmethod
    def joined(columns: Sequence["IdColumn"]) -> "IdColumn":
        """Several columns, one after the other. Only what they refer to is copied."""
        compact = [_of_bytes([*column.raw()]) for column in columns]
        ends = np.cumsum([0, *(len(column.data) for column in compact)])
        return IdColumn(
            data=np.concatenate([np.empty(0, dtype=np.uint8), *(column.data for column in compact)]),
            starts=np.concatenate(
                [np.empty(0, dtype=np.int64), *(c.starts + end for c, end in zip(compact, ends, strict=False))]
            ),
            lengths=np.concatenate([np.empty(0, dtype=np.int64), *(column.lengths for column in compact)]),
        )

    def raw(self) -> list[bytes]:
        """Each id as bytes."""
        return [
            self.data[start : start + length].tobytes()
            for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Places:
    """The ids of records that have none, from 0 up. Nothing of them is in memory before it is asked for."""

    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, which: slice | NDArray[np.int64]) -> IdColumn:
        places = np.arange(*which.indices(self.count)) if isinstance(which, slice) else which
        return IdColumn.of_places(places)


def _of_bytes(contents: Sequence[bytes]) -> IdColumn:
    lengths = np.fromiter((len(content) for content in contents), dtype=np.int64, count=len(contents))
    ends = np.cumsum(lengths)
    data = np.frombuffer(b"".join(contents), dtype=np.uint8)
    return IdColumn(data=data, starts=ends - lengths, lengths=lengths)
