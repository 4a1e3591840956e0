"""Who is chosen for a group of records, also where withdrawals left fewer than planned."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpal.randomness import Randomness
from dpal.selection.acquisition import Acquisition
from dpal.selection.selection import Chosen, Selection


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
