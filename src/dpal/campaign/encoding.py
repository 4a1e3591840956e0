"""Features of a campaign's records: computed once, with progress, kept in its folder, and checked when it is opened."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dpal.campaign import fault_points
from dpal.campaign.feature_cache import FeatureCache
from dpal.campaign.feature_files import FeatureFile, stored
from dpal.campaign.fingerprints import (
    CheckedRecords,
    Contents,
    chunks,
    fingerprints,
    fingerprints_of,
    text_fingerprints,
)
from dpal.campaign.held_out import require_held_out
from dpal.campaign.layout import FEATURES, HELD_OUT_FEATURES
from dpal.data import Pool
from dpal.data.records import ArrayRecords, Positions, Records, TextRecords
from dpal.errors import InvalidArgument, RecordsChanged
from dpal.models.encoder import IMAGES, TEXTS, Encoder, identity_of

# Records between two writes: what a killed process loses.
_CHUNK = 64
_TELL_EVERY_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """Encodes records into files of the campaign's folder."""

    encoder: Encoder
    folder: Path
    # Taken while features are computed: only one process may write them.
    lock: Callable[[], AbstractContextManager[None]]
    cache: str | None
    tell: Callable[[str], None]

    def pool(self, pool: Pool, checked: CheckedRecords, contents: Contents) -> Records:
        """What the model reads of the pool: the features of its records, which are checked when they are read.

        The file has a row for every record of the campaign. Those of withdrawn records are overwritten with zeros.
        """
        used = set(pool.ids.tolist())
        rows = np.flatnonzero([record_id in used for record_id in contents.ids])
        source = pool.records if isinstance(pool.records, TextRecords) else checked
        return self._complete(FEATURES, contents, source, rows).subset(rows)

    def held_out(self, evaluation: Pool, pool: Pool, contents: Contents) -> Records:
        """The same for a held-out set, which is refused if it shares records with the pool."""
        everything = np.arange(len(evaluation))
        batches = (fingerprints_of(evaluation.records, batch, contents.key) for batch in chunks(everything))
        known = tuple(fingerprint for batch in batches for fingerprint in batch)
        require_held_out(evaluation, pool, contents, known)
        own = Contents(
            ids=tuple(evaluation.ids.tolist()), fingerprints=known, stamps=("",) * len(known), key=contents.key
        )
        source: Records = evaluation.records
        if not isinstance(source, TextRecords):
            source = CheckedRecords(own, evaluation, _changed_while_read)
        return self._complete(HELD_OUT_FEATURES, own, source, everything)

    def _complete(self, name: str, contents: Contents, source: Records, rows: Positions) -> Records:
        """The features in a file, once none is missing. `rows` are the places of the source's records in it."""
        file = FeatureFile(
            self.folder / name,
            identity=self.encoder.identity(),
            width=self.encoder.width,
            fingerprints=contents.fingerprints,
            key=contents.key,
        )
        unwanted = np.setdiff1d(np.arange(len(contents.ids)), rows)
        if len(file.missing(rows)) or len(file.left_over(unwanted)):
            with self.lock():
                file.prepare()
                file.blank(file.left_over(unwanted))
                missing = np.flatnonzero(np.isin(rows, file.missing(rows)))
                if len(missing):
                    self._fill(file, source, rows, missing)
        return file.records()

    def _fill(self, file: FeatureFile, source: Records, rows: Positions, missing: Positions) -> None:
        cache = None if self.cache is None else FeatureCache(self.cache, width=self.encoder.width)
        where = ", once; the features stay in the campaign's folder"
        with _EncodingProgress(f"encoding with {self.encoder.name}", len(missing), self.tell, where=where) as progress:
            for start in range(0, len(missing), _CHUNK):
                positions = missing[start : start + _CHUNK]
                file.write(rows[positions], _features(self.encoder, _read(source, positions), cache))
                fault_points.reached("encode.chunk")
                progress.advance(len(positions))


def features_in_memory(
    encoder: Encoder, records: Records, *, cache: str | None, tell: Callable[[str], None]
) -> NDArray[np.float16]:
    """The features of public records, one row each. A pool's own are kept in files of its campaign instead."""
    shared = None if cache is None else FeatureCache(cache, width=encoder.width)
    rows: list[NDArray[np.float16]] = []
    with _EncodingProgress(f"encoding with {encoder.name}", len(records), tell) as progress:
        for positions in np.split(np.arange(len(records)), range(_CHUNK, len(records), _CHUNK)):
            rows.append(_features(encoder, _read(records, positions), shared))
            progress.advance(len(positions))
    return np.concatenate(rows)


def _features(encoder: Encoder, batch: Any, cache: FeatureCache | None) -> NDArray[np.float16]:
    if cache is None:
        return stored(encoder.encode(batch))
    # The hash has the encoder in it, and the contents; not the campaign's key, which other campaigns do not know.
    key = bytes.fromhex(encoder.identity())
    names = fingerprints(batch, key) if isinstance(batch, np.ndarray) else text_fingerprints(batch, key)
    known = cache.found(names)
    new = [place for place, name in enumerate(names) if name not in known]
    if new:
        chosen = batch[new] if isinstance(batch, np.ndarray) else [batch[place] for place in new]
        rows = stored(encoder.encode(chosen))
        cache.add([names[place] for place in new], rows)
        known |= {names[place]: row for place, row in zip(new, rows, strict=True)}
    return np.stack([known[name] for name in names])


def _read(source: Records, positions: Positions) -> Any:
    if isinstance(source, TextRecords):
        return [source.texts[position] for position in positions.tolist()]
    return source.read(positions)


def _changed_while_read(ids: list[str], what: str) -> RecordsChanged:
    return RecordsChanged(f"{len(ids):,} record(s) of the held-out set changed while they were read. Run it again.")


def require_encoder(encoder: Encoder | None, recorded: Mapping[str, Any] | None) -> None:
    """Refuse another encoder than the one that the campaign was created with."""
    identities = (None if encoder is None else encoder.identity(), None if recorded is None else identity_of(recorded))
    if identities[0] != identities[1]:
        given = None if encoder is None else f"{encoder.name} ({encoder.sha256[:16]}…)"
        was = "none" if recorded is None else f"{recorded['name']} ({recorded['sha256'][:16]}…) with the same settings"
        raise InvalidArgument("the encoder", given, f"{was}, as when the campaign was created")


def kind_of(records: Records) -> str:
    """What an encoder must read to read these records."""
    return TEXTS if isinstance(records, TextRecords) else IMAGES


def synthetic_features(encoder: Encoder, pool: Pool, held_out: Pool | None = None) -> Records:
    """What the model will read, from a synthetic record of the pool's form. An encoder that cannot read it is refused.

    No real record may decide whether this succeeds.
    """
    for records in (pool.records, *([] if held_out is None else [held_out.records])):
        if kind_of(records) != encoder.reads:
            raise InvalidArgument("encoder", encoder.name, f"one that reads {kind_of(records)}, as the records are")
    return ArrayRecords(np.concatenate([_synthetic(encoder, pool.records)] * 2))


def _synthetic(encoder: Encoder, records: Records) -> NDArray[np.float16]:
    if isinstance(records, TextRecords):
        return stored(encoder.encode([("a text",) * len(records.texts[0])]))
    forms: Sequence[Any] = list(records.form.values())
    return stored(encoder.encode(np.zeros((1, *forms[0].shape), dtype=forms[0].dtype)))


class _EncodingProgress:
    """A bar with the time left on a terminal; otherwise a line a minute."""

    def __init__(self, description: str, records: int, tell: Callable[[str], None], *, where: str = "") -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._task = self._bar.add_task(description, total=records)
        self._description, self._records, self._tell, self._done = description, records, tell, 0
        self._where = where
        self._started = self._told = time.monotonic()

    def __enter__(self) -> "_EncodingProgress":
        self._tell(f"{self._description}: {self._records:,} records{self._where}")
        self._bar.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._bar.stop()

    def advance(self, records: int) -> None:
        self._bar.advance(self._task, records)
        first, self._done = self._done == 0, self._done + records
        now = time.monotonic()
        left = (now - self._started) / self._done * (self._records - self._done)
        due = now - self._told >= _TELL_EVERY_SECONDS or (first and left >= _TELL_EVERY_SECONDS)
        if due and not self._bar.console.is_terminal:
            self._told = now
            self._tell(
                f"{self._description}: {self._done:,} of {self._records:,} records, about {left / 60:,.0f} minutes left"
            )
