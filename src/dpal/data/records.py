"""What a pool's records are made of: arrays in memory or on disk, encoded images, texts. Read by position."""

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpal.errors import BadData, InvalidArgument

Positions: TypeAlias = NDArray[np.int64]
# Rows of one array, or of several arrays by name, as text models need them.
Values: TypeAlias = NDArray[np.generic] | dict[str, NDArray[np.generic]]


_CHUNK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PartForm:
    """What one record of an array looks like: public, the same for every record."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


# By name as in `Values`; a single array has the name "".
Form: TypeAlias = dict[str, PartForm]


class Records(ABC):
    """A fixed number of records."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, positions: Positions) -> Values:
        """The records at these positions, one per row."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """The dtype and shape of every record, known without reading one: a single record's form is private."""

    @property
    def bytes_each(self) -> int:
        """How much memory one record takes once it is read."""
        return sum(part.dtype.itemsize * math.prod(part.shape) for part in self.form.values())

    @property
    def preparation(self) -> str | None:
        """What was done to a record before it is read, for someone who repeats it elsewhere. None: nothing."""
        return None

    def subset(self, positions: Positions) -> "Records":
        """Some of these records, in this order."""
        return Subset(self, positions)

    def stamp(self) -> str:
        """Changes when the files behind the records do, as far as their sizes and times show."""
        return ""

    def stamps(self, positions: Positions) -> list[str]:
        """Shows a changed record without reading it: its file's size and times. Empty where only reading can tell."""
        return [""] * len(positions)


class WrappedRecords(Records):
    """The same records, read through a check that a subclass adds."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @property
    def form(self) -> Form:
        return self._records.form

    @property
    def preparation(self) -> str | None:
        return self._records.preparation

    def stamp(self) -> str:
        return self._records.stamp()

    def stamps(self, positions: Positions) -> list[str]:
        return self._records.stamps(positions)


def file_stamp(file: Path | str) -> str:
    """A file's size and its times of modification and of renaming: swapped files are noticed too."""
    try:
        facts = os.stat(file)  # noqa: PTH116 (a cell may hold something too long for a path)
    except (OSError, ValueError):
        return "missing"
    return f"{facts.st_size},{facts.st_mtime_ns},{facts.st_ctime_ns}"


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRecords(Records):
    """Rows of arrays, which may be memory maps: only what is read comes into memory."""

    arrays: NDArray[np.generic] | Mapping[str, NDArray[np.generic]] = field(repr=False)

    def __post_init__(self) -> None:
        parts = self._parts()
        if not parts:
            raise InvalidArgument("the arrays", "{}", "at least one")
        for name, part in parts.items():
            # What type checkers know, users may not: lists, data frames and tensors end up here.
            if not isinstance(part, np.ndarray) or part.ndim == 0:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidArgument(f"the array {name}", type(part).__name__, "a numpy array with one row per record")
        lengths = {name: len(part) for name, part in parts.items()}
        if len(set(lengths.values())) > 1:
            raise BadData(f"The arrays have different numbers of records: {lengths}. Each needs one row per record.")
        for name, part in parts.items():
            if part.dtype.kind not in "buif":
                raise BadData(f"The array {name} holds {part.dtype}. Records must be numbers.")

    def _parts(self) -> dict[str, NDArray[np.generic]]:
        return dict(self.arrays) if isinstance(self.arrays, Mapping) else {"values": self.arrays}

    def __len__(self) -> int:
        return len(next(iter(self._parts().values())))

    def read(self, positions: Positions) -> Values:
        if isinstance(self.arrays, Mapping):
            return {name: np.asarray(part[positions]) for name, part in self.arrays.items()}
        return np.asarray(self.arrays[positions])

    @property
    def form(self) -> Form:
        parts = self.arrays if isinstance(self.arrays, Mapping) else {"": self.arrays}
        return {name: PartForm(dtype=part.dtype, shape=part.shape[1:]) for name, part in parts.items()}

    def stamp(self) -> str:
        """A hash of the contents: an array in memory has no file whose time could show a change."""
        digest = hashlib.sha256()
        for name, part in sorted(self._parts().items()):
            digest.update(f"{name},{part.dtype.str},{part.shape};".encode())
            for start in range(0, len(part), _CHUNK):
                digest.update(part[start : start + _CHUNK].tobytes())
        return digest.hexdigest()

    def stamps(self, positions: Positions) -> list[str]:
        files = [getattr(part, "filename", None) for part in self._parts().values()]
        stamp = "" if None in files else ";".join(file_stamp(str(file)) for file in files)
        return [stamp] * len(positions)


@dataclass(frozen=True, slots=True, eq=False)
class TextRecords(Records):
    """Texts, or tuples of texts such as premise and hypothesis. A tokenizer turns them into arrays before training."""

    texts: Sequence[tuple[str, ...]] = field(repr=False)

    def __post_init__(self) -> None:
        # A plain string here would be split into its letters.
        if any(isinstance(texts, str) or len(texts) != len(self.texts[0]) for texts in self.texts):
            raise BadData("The records are not all alike. Each must be a tuple with the same number of texts.")

    def __len__(self) -> int:
        return len(self.texts)

    def subset(self, positions: Positions) -> "TextRecords":
        return TextRecords([self.texts[position] for position in positions])

    def read(self, positions: Positions) -> Values:
        raise _not_numbers()

    @property
    def form(self) -> Form:
        raise _not_numbers()


@dataclass(frozen=True, slots=True, eq=False)
class Subset(Records):
    """Some of the records of another collection, in any order."""

    whole: Records
    positions: Positions = field(repr=False)

    def __len__(self) -> int:
        return len(self.positions)

    def read(self, positions: Positions) -> Values:
        return self.whole.read(self.positions[positions])

    @property
    def form(self) -> Form:
        return self.whole.form

    @property
    def preparation(self) -> str | None:
        return self.whole.preparation

    def stamp(self) -> str:
        return self.whole.stamp()

    def stamps(self, positions: Positions) -> list[str]:
        return self.whole.stamps(self.positions[positions])


def _not_numbers() -> BadData:
    return BadData("Texts must be tokenized first: give `text.tokenizer`, or use dpal.data.tokenized(pool, model=...).")


def is_text(value: object) -> bool:
    """Whether this is a text that can be encoded. Half a surrogate pair (a cut emoji) cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def decoding_workers() -> int:
    """How many threads decode at once: one per core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
