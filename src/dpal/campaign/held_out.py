"""The checks that a held-out set shares no record and nobody with the pool: its scores are shown, so it is public."""

from collections.abc import Collection, Sequence

import numpy as np

from dpal.campaign.fingerprints import Contents, chunks, few, fingerprints, fingerprints_of
from dpal.data import Pool
from dpal.data.large_pool import LargePool
from dpal.data.records import Positions, Records, TextRecords, Values, WrappedRecords
from dpal.errors import BadData


def require_held_out(
    evaluation: Pool,
    pool: Pool,
    contents: Contents,
    fingerprinted: Sequence[bytes] | None = None,
    *,
    at_creation: str | None = None,
) -> None:
    """Refuse a held-out set with a record of the pool, by id or by contents.

    Most records of a large pool are not in `contents`: there the set must be the one that was compared with all of
    them, which has the hash `at_creation`.

    If its fingerprints are not given, they are computed for records in memory; records in files are compared when they
    are read for the evaluation (`guarded`). Parts of one published dataset are compared by id only: some hold true
    duplicates, which are public.
    """
    if isinstance(pool, LargePool):
        _require_as_created(evaluation, contents.key, at_creation)
    # A row number and an id that is the same number do not mean the same record.
    if not (evaluation.ids_are_places or pool.ids_are_places):
        known = set(contents.ids)
        shared = [name for name in evaluation.ids.tolist() if name in known]
        if shared:
            raise _refused(f"{len(shared):,} id(s) with the pool: {few(shared)}")
    positions = np.arange(len(evaluation))
    if not _by_contents(evaluation, pool):
        return
    if fingerprinted is None and not any(evaluation.records.stamps(positions[:1])):
        batches = (fingerprints_of(evaluation.records, batch, contents.key) for batch in chunks(positions))
        fingerprinted = [fingerprint for batch in batches for fingerprint in batch]
    _require_other_contents(fingerprinted or (), frozenset(contents.fingerprints))


def held_out_hash(evaluation: Pool, key: bytes) -> str:
    """A hash of the ids and keyed fingerprints of a held-out set."""
    batches = (fingerprints_of(evaluation.records, batch, key) for batch in chunks(np.arange(len(evaluation))))
    prints = tuple(fingerprint for batch in batches for fingerprint in batch)
    return Contents(ids=tuple(evaluation.ids.tolist()), fingerprints=prints, stamps=(), key=key).hash()


def _require_as_created(evaluation: Pool, key: bytes, at_creation: str | None) -> None:
    if at_creation is not None and held_out_hash(evaluation, key) == at_creation:
        return
    what = "is not the one that the campaign was created with"
    if at_creation is None:
        what = "is new: the campaign was created without a held-out set"
    raise BadData(
        f"The held-out set {what}. Its scores are shown, so it may hold only public records, and every record of a "
        "large pool is compared with it only when a campaign is created. Take the first one, or none. Nothing was "
        "changed."
    )


def require_separate_units(evaluation: Pool, pool: Pool, contents: Contents) -> None:
    """Refuse a held-out set with someone of the campaign in it, withdrawn or not: its scores are shown."""
    if pool.units is None:
        return
    if evaluation.units is None:
        raise BadData(
            f"The held-out set does not say which {pool.unit} each record belongs to, and nobody may be in it and in "
            "the pool. Say so with evaluation.unit, or in Python with dpal.data.with_units(evaluation, ...). Nothing "
            "was changed."
        )
    # Whoever was in the pool when the campaign was created: the mean and earlier models were made with withdrawn ones.
    known = {*pool.units.names, *(contents.units or ())}
    shared = [name for name in evaluation.units.names if name in known]
    if shared:
        raise BadData(
            f"The held-out set shares {len(shared):,} unit(s) ({pool.unit}) with the pool: {few(shared)}. Its scores "
            "are shown, so nobody may be in both: remove their records from one of the two. Nothing was changed."
        )


def _require_other_contents(fingerprinted: Collection[bytes], of_the_pool: Collection[bytes]) -> None:
    shared = sum(fingerprint in of_the_pool for fingerprint in fingerprinted)
    if shared:
        raise _refused(f"the contents of {shared:,} record(s) with the pool, whatever their ids")


def guarded(evaluation: Pool, inputs: Records, pool: Pool, contents: Contents) -> Records:
    """What the model reads of the held-out set; records in files are compared with the pool as they are read."""
    if isinstance(evaluation.records, TextRecords) or not _by_contents(evaluation, pool):
        return inputs
    return _HeldOutRecords(inputs, contents)


def _by_contents(evaluation: Pool, pool: Pool) -> bool:
    return evaluation.published is None or evaluation.published != pool.published


def _refused(what: str) -> BadData:
    return BadData(
        f"The held-out set shares {what}. Its scores are shown, so it may hold only public records: remove what is "
        "shared from one of the two. Nothing was changed."
    )


class _HeldOutRecords(WrappedRecords):
    """Records that are refused if the pool has them too."""

    def __init__(self, records: Records, contents: Contents) -> None:
        super().__init__(records)
        self._key, self._of_the_pool = contents.key, frozenset(contents.fingerprints)

    def read(self, positions: Positions) -> Values:
        values = self._records.read(positions)
        _require_other_contents(fingerprints(values, self._key), self._of_the_pool)
        return values
