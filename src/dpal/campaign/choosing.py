"""Whom the initial set and a query ask for: units or, where none are named, records."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import fault_points
from dpal.campaign.campaign_units import CampaignUnits
from dpal.campaign.parts import Parts
from dpal.campaign.state import State
from dpal.data import Pool
from dpal.planning.plan import Plan
from dpal.randomness import Randomness
from dpal.selection.acquisition import Acquisition, probabilities_from_logits
from dpal.selection.acquisition_checks import scores_by_record
from dpal.selection.baselines import RandomSelection
from dpal.selection.selection import Chosen, Selection
from dpal.training.learner import Learner

_NUL = "\0"


def initial_set(state: State, plan: Plan, units: CampaignUnits, parts: Parts, randomness: Randomness) -> Chosen:
    """The initial set: as it was given, or drawn at random without looking at any record."""
    if state.created.initial:
        return Chosen(to_label=_given(state, parts.pool), retired=np.empty(0, dtype=np.str_))
    # As planned: where withdrawals left fewer, blanks fill up.
    selection = RandomSelection(query_size=plan.groups[0].size, unlabelled=plan.setting.pool_size)
    names = units.names[units.choosable()]
    return choose_with_blanks(selection, np.zeros(len(names)), names, parts.acquisition, randomness)


def queried(
    state: State,
    selection: Selection,
    units: CampaignUnits,
    parts: Parts,
    *,
    scores: Callable[[], NDArray[np.float64]],
    randomness: Randomness,
) -> Chosen:
    """The choice of a query among all that are not labelled or retired. `scores` has one score per unit."""
    left = units.choosable(state.taken())
    # Also with nobody left to choose from: whether everybody is labelled may be private, so a cut is released too.
    of_left = scores()[left] if selection.reads_scores and len(parts.pool) else np.zeros(len(left))
    fault_points.reached("select.scored")
    return choose_with_blanks(selection, of_left, units.names[left], parts.acquisition, randomness)


def records_to_label(chosen: Chosen, state: State, group: int, units: CampaignUnits, pool: Pool) -> tuple[str, ...]:
    """The ids of the records that people are asked about."""
    names = units.records_of(chosen.to_label.tolist(), pool)
    if group > 0 or not state.created.initial:
        return names
    # Those that were labelled before, and no others of the same units.
    labelled = set(state.created.initial)
    return tuple(name for name in names if name in labelled)


def pool_scores(learner: Learner, units: CampaignUnits, parts: Parts, randomness: Randomness) -> NDArray[np.float64]:
    """A score for every unit of the pool, labelled or not, so that nobody's place depends on who is labelled.

    The last bits of a record's score, and its dropout masks, may depend on its place in a batch.
    """
    acquisition, pool = parts.acquisition, parts.pool
    positions, places = units.scoring_order() if units.are_named else (np.arange(len(pool)), None)
    logits = learner.logits(positions, passes=acquisition.passes, randomness=randomness)
    scores = scores_by_record(acquisition, probabilities_from_logits(logits, multi_label=pool.multi_label))
    return scores if places is None else units.scores(scores, places)


def _given(state: State, pool: Pool) -> NDArray[np.str_]:
    """The initial set that was labelled before, without withdrawn records."""
    kept = [name for name in state.created.initial if name not in state.withdrawn]
    if pool.units is None:
        return np.asarray(kept, dtype=np.str_)
    return np.asarray(pool.units.take(pool.positions(kept)).names, dtype=np.str_)


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
        ids=np.concatenate([ids, blank_ids(blanks)]),
    )
    return without_blanks(chosen)


def blank_ids(count: int) -> NDArray[np.str_]:
    """Ids for blanks, each with coins of its own. No record has one of them: ids are without NUL."""
    return np.asarray([f"{_NUL}{number}" for number in range(count)], dtype=np.str_)


def without_blanks(chosen: Chosen) -> Chosen:
    """The choice without blanks."""
    to_label, retired = (
        ids[np.asarray([not str(name).startswith(_NUL) for name in ids], dtype=np.bool_)]
        for ids in (chosen.to_label, chosen.retired)
    )
    return replace(chosen, to_label=to_label, retired=retired)
