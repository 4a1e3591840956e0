"""A held-out set shares no record with the pool: its scores are shown, so they must be about public records alone."""

from collections.abc import Collection, Sequence

import numpy as np

from dpal.campaign.contents import Contents, chunks, few, fingerprints, fingerprints_of
from dpal.data import Pool
from dpal.data.records import Form, Positions, Records, TextRecords, Values
from dpal.errors import BadData


def require_held_out(
    evaluation: Pool, pool: Pool, contents: Contents, fingerprinted: Sequence[bytes] | None = None
) -> None:
    """Refuse a held-out set with a record of the pool, by id or by contents.

    Where its fingerprints are not given, they are taken of records in memory; those in files are compared when they
    are read to be measured (`guarded`). Parts of one published dataset are told apart by their ids: some hold true
    duplicates, which are public.
    """
    if not (evaluation.ids_are_places and pool.ids_are_places):
        known = set(contents.ids)
        shared = [name for name in evaluation.ids.tolist() if name in known]
        if shared:
            raise _refused(f"{len(shared):,} id(s) with the pool: {few(shared)}")
    everyone = np.arange(len(evaluation))
    if not _by_contents(evaluation, pool):
        return
    if fingerprinted is None and not any(evaluation.records.stamps(everyone[:1])):
        some = (fingerprints_of(evaluation.records, each, contents.key) for each in chunks(everyone))
        fingerprinted = [fingerprint for each in some for fingerprint in each]
    _require_other_contents(fingerprinted or (), frozenset(contents.fingerprints))


def _require_other_contents(found: Collection[bytes], of_the_pool: Collection[bytes]) -> None:
    shared = sum(each in of_the_pool for each in found)
    if shared:
        raise _refused(f"the contents of {shared:,} record(s) with the pool, under whatever ids")


def guarded(evaluation: Pool, inputs: Records, pool: Pool, contents: Contents) -> Records:
    """What the model reads of the held-out set, where records that lie in files are compared as they are read."""
    if isinstance(evaluation.records, TextRecords) or not _by_contents(evaluation, pool):
        return inputs
    return _HeldOutRecords(inputs, contents)


def _by_contents(evaluation: Pool, pool: Pool) -> bool:
    return evaluation.published is None or evaluation.published != pool.published


def _refused(what: str) -> BadData:
    return BadData(
        f"The held-out set shares {what}. Its scores are shown, so they must be about public records alone: leave what "
        "is shared out of one of the two. Nothing was changed."
    )


class _HeldOutRecords(Records):
    """Records that are refused where the pool has them too."""

    def __init__(self, records: Records, contents: Contents) -> None:
        self._records, self._key, self._of_the_pool = records, contents.key, frozenset(contents.fingerprints)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def form(self) -> Form:
        return self._records.form

    def stamp(self) -> str:
        return self._records.stamp()

    def read(self, positions: Positions) -> Values:
        values = self._records.read(positions)
        _require_other_contents(fingerprints(values, self._key), self._of_the_pool)
        return values
