"""A pool: records with stable ids, and labels where there are any."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpal.data.class_labels import UNLABELLED
from dpal.data.ids import as_ids
from dpal.data.records import Positions, Records
from dpal.data.units import Units
from dpal.errors import BadData, DpalError

_SHOWN = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Records by id. Their number and the names of the classes are public; labels and their counts are not.

    Labels are class numbers (−1: no label). With several labels per record they are rows of targets (NaN: no label).
    """

    name: str
    ids: NDArray[np.str_] = field(repr=False)
    records: Records = field(repr=False)
    classes: tuple[str, ...]
    labels: NDArray[np.int64] | NDArray[np.float32] | None = field(repr=False, default=None)
    multi_label: bool = False
    class_counts_are_public: bool = False
    # Ids may be shown to others: they reveal nothing about a record, as in a published dataset.
    ids_are_free_of_content: bool = False
    # The name of the published dataset that the records come from.
    published: str | None = None
    # Ids are row numbers or paths inside a folder: in another file or folder they would mean other records.
    ids_are_places: bool = False
    # Whom the promise protects, where several records may belong to one person. None: each record by itself.
    units: Units | None = None

    def __post_init__(self) -> None:
        if len(self.ids) == 0:
            raise BadData(f"The pool {self.name} is empty.")
        if len(self.ids) != len(self.records):
            raise BadData(f"The pool {self.name} has {len(self.ids):,} ids for {len(self.records):,} records.")
        self._check_ids()
        if self.units is not None and len(self.units.of_records) != len(self.ids):
            raise BadData(f"There are {len(self.units.of_records):,} units for {len(self.ids):,} records.")
        if self.labels is not None:
            self._check_labels(self.labels)

    def _check_ids(self) -> None:
        unique, counts = np.unique(self.ids, return_counts=True)
        twice = unique[counts > 1]
        if len(twice):
            raise BadData(
                f"{len(twice):,} id(s) of the pool {self.name} occur more than once: {_few(twice)}. An id must always "
                "mean the same single record."
            )
        if unique[0] == "":
            raise BadData(f"A record of the pool {self.name} has an empty id.")

    def _check_labels(self, labels: NDArray[np.int64] | NDArray[np.float32]) -> None:
        shape = (len(self.ids), len(self.classes)) if self.multi_label else (len(self.ids),)
        if labels.shape != shape:
            raise BadData(f"The labels of the pool {self.name} have the shape {labels.shape} instead of {shape}.")
        if not self.multi_label and labels.dtype.kind not in "iu":
            raise BadData(f"The labels of the pool {self.name} are {labels.dtype} instead of class numbers.")
        if self.multi_label:
            missing = np.isnan(labels).all(axis=1)
            wrong = ~missing & ~((labels >= 0) & (labels <= 1)).all(axis=1)
        else:
            wrong = (labels < UNLABELLED) | (labels >= len(self.classes))
        if wrong.any():
            raise BadData(
                f"{int(wrong.sum()):,} label(s) of the pool {self.name} are outside its {len(self.classes)} classes, "
                f"at the record(s) {_few(self.ids[wrong])}."
            )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.ids, kind="stable")

    def positions(self, ids: Iterable[str]) -> Positions:
        """The positions of these ids. An unknown id is an error."""
        wanted = as_ids(ids)
        if not len(wanted):
            return np.empty(0, dtype=np.int64)
        places = np.searchsorted(self.ids, wanted, sorter=self._order)
        positions = self._order[np.minimum(places, len(self.ids) - 1)]
        unknown = self.ids[positions] != wanted
        if unknown.any():
            raise BadData(
                f"{int(unknown.sum()):,} id(s) are not in the pool {self.name}: {_few(wanted[unknown])}. Its ids look "
                f"like {str(self.ids[0])!r}."
            )
        return positions

    def take(self, ids: Iterable[str], *, name: str | None = None) -> "Pool":
        """A pool of only these records, in this order."""
        positions = self.positions(ids)
        return replace(
            self,
            name=name or self.name,
            ids=self.ids[positions],
            records=self.records.subset(positions),
            labels=None if self.labels is None else self.labels[positions],
            units=None if self.units is None else self.units.take(positions),
        )

    @cached_property
    def unit_count(self) -> int:
        """How many people, or whatever the units are, the promise protects: public. Without units, the records."""
        return len(self.ids) if self.units is None else len(self.units.names)

    @property
    def rows_per_unit(self) -> int:
        """The most records of a unit that are labelled and trained on."""
        return 1 if self.units is None else self.units.rows

    @property
    def unit(self) -> str:
        """What the promise protects one of."""
        return "record" if self.units is None else self.units.word

    def labelled(self) -> NDArray[np.bool_]:
        """Which records have a label."""
        if self.labels is None:
            return np.zeros(len(self.ids), dtype=np.bool_)
        missing = np.isnan(self.labels).any(axis=1) if self.multi_label else self.labels == UNLABELLED
        return ~np.asarray(missing)

    def class_counts(self) -> dict[str, float]:
        """How many records each class has, if that is public."""
        if not self.class_counts_are_public:
            raise DpalError(
                f"The counts of classes of the pool {self.name} are private. If they may be known, make the pool with "
                "class_counts_are_public=True."
            )
        if self.labels is None:
            raise DpalError(f"The pool {self.name} has no labels to count.")
        known = self.labels[self.labelled()]
        sums = known.sum(axis=0) if self.multi_label else np.bincount(known, minlength=len(self.classes))
        return {name: float(total) for name, total in zip(self.classes, sums, strict=True)}

    def fingerprint(self) -> str:
        """A hash of the ids in their order: it tells pools apart without using anything private."""
        digest = hashlib.sha256()
        for name in self.ids:
            digest.update(str(name).encode() + b"\0")
        return digest.hexdigest()


def _few(names: NDArray[np.str_]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(str(name)) for name in names[:_SHOWN]) + more
