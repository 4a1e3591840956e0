"""Groups of records that are labelled together: who is chosen for one, and where its records are."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.state import State
from dpal.data import Pool
from dpal.randomness import Randomness
from dpal.selection.acquisition import Acquisition
from dpal.selection.selection import Chosen, Selection
from dpal.training.sampling import BLANK


def chosen_among_blanks(
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


def positions_of_group(state: State, group: int, pool: Pool) -> NDArray[np.int64]:
    """The positions of a group's records. One without a label keeps its place as a blank: its contents may change
    only its own gradient.
    """
    labelled = state.trainable(group)
    places = dict(zip(labelled, pool.positions(labelled).tolist(), strict=True))
    return np.asarray([places.get(name, BLANK) for name in state.groups[group]], dtype=np.int64)
