"""The pool as a campaign uses it: its own records, in its own order, without those that were withdrawn."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.config import CampaignConfig
from dpal.campaign.fingerprints import CheckedRecords, Contents, few, records_refused
from dpal.campaign.layout import CONFIG
from dpal.campaign.state import State
from dpal.data import Pool
from dpal.data.sources import open_pool
from dpal.errors import DamagedCampaign, MissingData, RecordsChanged
from dpal.randomness import Randomness
from dpal.selection.acquisition import Acquisition
from dpal.selection.selection import Chosen, Selection
from dpal.training.sampling import BLANK


def nothing_charged() -> str:
    """What most errors say about charges."""
    return "Nothing was charged."


def campaign_pool(
    pool: Pool, state: State, contents: Contents, *, folder: Path, charged: Callable[[], str] = nothing_charged
) -> Pool:
    """The pool in the campaign's order and without withdrawn records. One with other ids or classes is refused."""
    created = state.created
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
    return pool if pool.ids.tolist() == kept else pool.take(kept)


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
    if config.data is None:
        raise MissingData(f"{folder / CONFIG} names no data, because the pool was given in Python. Continue there.")
    return open_pool(config.data.source, config.data.options)


def targets_of(state: State, pool: Pool) -> NDArray[np.generic]:
    """The labels, in a row for every record; rows of records without a label are not used."""
    shape = (len(pool), len(pool.classes)) if pool.multi_label else (len(pool),)
    targets = np.zeros(shape, dtype=np.float32 if pool.multi_label else np.int64)
    names = [name for group in range(len(state.groups)) for name in state.trainable(group)]
    for name, position in zip(names, pool.positions(names), strict=True):
        targets[position] = state.answers[name]
    return targets


def members_of(state: State, group: int, pool: Pool) -> NDArray[np.int64]:
    """The positions of a group's records. One without a label keeps its place as a blank: its contents may change
    only its own gradient.
    """
    labelled = state.trainable(group)
    places = dict(zip(labelled, pool.positions(labelled).tolist(), strict=True))
    return np.asarray([places.get(name, BLANK) for name in state.groups[group]], dtype=np.int64)


def choose_with_blanks(
    selection: Selection,
    scores: NDArray[np.float64],
    ids: NDArray[np.str_],
    acquisition: Acquisition,
    randomness: Randomness,
) -> Chosen:
    """The choice of a selection. If withdrawals left fewer records than its ε was computed for, blanks are added.

    A blank has the lowest score, as in the definition of neighbouring pools, and is dropped if it is chosen.
    """
    blanks = max(0, selection.smallest_pool - len(ids))
    chosen = selection.choose(
        np.concatenate([scores, np.zeros(blanks)]),
        highest=acquisition.highest,
        clip=acquisition.clip,
        randomness=randomness,
        ids=np.concatenate([ids, np.full(blanks, "", dtype=ids.dtype)]),
    )
    return replace(
        chosen, to_label=chosen.to_label[chosen.to_label != ""], retired=chosen.retired[chosen.retired != ""]
    )
