"""The pool as a campaign uses it: its own records, in its own order, without those that were withdrawn."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.config import CampaignConfig
from dpal.campaign.fingerprints import CheckedRecords, Contents, few, records_refused
from dpal.campaign.large_contents import at_hand
from dpal.campaign.layout import CONFIG
from dpal.campaign.state import State
from dpal.data import Pool
from dpal.data.large_pool import LargePool
from dpal.errors import DamagedCampaign, MissingData, RecordsChanged


def nothing_charged() -> str:
    """What most errors say about charges."""
    return "Nothing was charged."


def campaign_pool(
    pool: Pool, state: State, contents: Contents, *, folder: Path, charged: Callable[[], str] = nothing_charged
) -> Pool:
    """The pool in the campaign's order and without withdrawn records. One with other ids or classes is refused."""
    created = state.created
    if isinstance(pool, LargePool):
        pool = at_hand(pool, state, folder)
    given, known = set(pool.ids.tolist()), set(contents.ids)
    kept = [record_id for record_id in contents.ids if record_id not in state.withdrawn]
    if missing := [record_id for record_id in kept if record_id not in given]:
        raise records_refused(
            missing,
            "are no longer in the data",
            folder=folder,
            row_numbers=contents.ids_are_row_numbers(),
            charged=charged(),
        )
    if unknown := sorted(given - known):
        raise RecordsChanged(
            f"{len(unknown):,} record(s) in the data are not in the campaign {folder}: {few(unknown)}. A campaign's "
            "pool cannot grow: remove them from the data, or make a new campaign. Nothing was changed."
        )
    if (pool.classes, pool.multi_label) != (created.classes, created.multi_label):
        raise DamagedCampaign(
            f"The pool's classes are {', '.join(pool.classes)}, but the campaign {folder} was created with "
            f"{', '.join(created.classes)}, in this order. Nothing was changed."
        )
    _require_units(pool, contents)
    return pool if pool.ids.tolist() == kept else pool.take(kept)


def _require_units(pool: Pool, contents: Contents) -> None:
    """Refuse a pool whose records belong to other units than when the campaign was created."""
    given = pool.units
    if (given is None) != (contents.units is None):
        what = "names no units" if given is None else "names units"
        was = "without them" if contents.units is None else "with units"
        raise RecordsChanged(
            f"The pool {pool.name} {what}, but the campaign was created {was} (data.unit). Nothing was changed."
        )
    if given is None or contents.units is None:
        return
    known = dict(zip(contents.ids, contents.units, strict=True))
    pairs = zip(pool.ids.tolist(), given.of_records.tolist(), strict=True)
    moved = [record_id for record_id, unit in pairs if known.get(record_id, unit) != unit]
    if moved:
        raise RecordsChanged(
            f"{len(moved):,} record(s) belong to another {given.word} than when the campaign was created: "
            f"{few(moved)}. Whom the promise protects cannot change. Nothing was changed."
        )


def checked_records(
    pool: Pool, contents: Contents, *, folder: Path, charged: Callable[[], str] = nothing_charged
) -> CheckedRecords:
    """The pool's records, compared with their fingerprints whenever they are read."""

    def refused(ids: list[str], what: str) -> RecordsChanged:
        row_numbers = contents.ids_are_row_numbers()
        return records_refused(ids, what, folder=folder, row_numbers=row_numbers, charged=charged())

    return CheckedRecords(contents, pool, refused)


def open_data(config: CampaignConfig, *, folder: Path) -> Pool:
    """The pool that a campaign's configuration names."""
    # Every kind of source: not for campaigns that are only looked at.
    from dpal.data.sources import open_pool

    if config.data is None:
        raise MissingData(f"{folder / CONFIG} names no data, because the pool was given in Python. Continue there.")
    return open_pool(config.data.source, config.data.options, config.data.unit)


def targets_of(state: State, pool: Pool) -> NDArray[np.generic]:
    """The labels, in a row for every record; rows of records without a label are not used."""
    shape = (len(pool), len(pool.classes)) if pool.multi_label else (len(pool),)
    targets = np.zeros(shape, dtype=np.float32 if pool.multi_label else np.int64)
    names = [name for group in range(len(state.groups)) for name in state.trainable(group)]
    for name, position in zip(names, pool.positions(names), strict=True):
        targets[position] = state.answers[name]
    return targets
