"""The scores that a query saw, for pictures of simulations. Scores of a real campaign are private."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.state import fold
from dpal.campaign.step_randomness import fresh_key, randomness_of
from dpal.errors import InvalidArgument

if TYPE_CHECKING:
    from dpal.campaign.runner import Runner


def simulated_scores(runner: "Runner", group: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The scores that a query saw, and which records it took. Only in simulations: scores are private."""
    state = runner.reader.state()
    if state.created.seed is None:
        raise InvalidArgument("seed", None, "set: scores are private, and are shown only in simulations (not_private)")
    if state.created.large:
        raise InvalidArgument("data.source", "parquet", "another one: the scores of a large pool are deleted")
    if not 1 <= group < len(state.selected):
        raise InvalidArgument("the query", group, f"from 1 to {len(state.selected) - 1}, the queries so far")
    recorded = runner.reader.recorded
    (number,) = (entry.number for entry in recorded if entry.fact == state.selected[group])
    before, charged = fold(recorded[: number - 1]), fold(recorded[: state.selected[group].charge])
    # The step saw the facts up to its charge, and the withdrawals up to its end.
    seen = replace(charged, withdrawn=before.withdrawn)
    names = runner.units.names
    left = runner.units.choosable(seen.taken())
    withdrawn = len(seen.withdrawn) if seen.withdrawn != charged.withdrawn else 0
    key = fresh_key(state.created.seed, len(seen.charges) - 1, withdrawn)
    scores = runner.scores(seen, randomness_of(key, state.created.seed))
    chosen = {*state.selected[group].chosen, *state.selected[group].retired}
    return scores[left], np.asarray([names[place] in chosen for place in left])
