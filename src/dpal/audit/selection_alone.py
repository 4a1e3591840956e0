"""Attacks on selections by themselves: one release of the very object that the plan holds, looked at many times."""

import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpal.audit.attack import Attack, Effort, Evidence, Finding, Target, finding, randomness_of
from dpal.audit.canary_campaign import choice_evidence
from dpal.audit.claims import claim_of_selection
from dpal.randomness import Randomness
from dpal.selection.cut import CutSelection
from dpal.selection.selection import Selection

# A pool of so many canaries at once, where each of them gets an answer of its own.
_TOGETHER = 2_000


class CutAttack(Attack):
    """One record more moves the ranks of a cut; others lie so that this tips it as far as it can."""

    name: ClassVar[str] = "cut"
    what: ClassVar[str] = (
        "Someone who knows every other record's score sees one cut, and guesses whether one more record was there."
    )

    def applies(self, target: Target) -> bool:
        return any(isinstance(selection, CutSelection) for selection in target.plan.selections)

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        planned = [selection for selection in target.plan.selections if isinstance(selection, CutSelection)]
        # The one that costs most. Coins decide between equal scores only; without them a look is far faster.
        selection = replace(max(planned, key=lambda each: each.cut_epsilon), coin_levels=1)
        randomness, looks = randomness_of(effort, stream=2), max(8, effort.looks // 2)
        present, absent = (_cuts(selection, there, looks, randomness) for there in (True, False))
        return finding(
            self,
            claim_of_selection(selection, delta=target.plan.setting.target_delta),
            present,
            absent,
            runs=2 * looks,
            seconds=time.monotonic() - start,
            gaussian=False,
            is_about_plan=False,
        )


def _cuts(selection: CutSelection, is_there: bool, looks: int, randomness: Randomness) -> Evidence:
    """1 for cuts that one more record at the top makes likelier, and −1 for those that it makes less likely."""
    # With one record fewer than wanted at the top, and one below it, cuts above the one below miss by one record and
    # cuts at or under it are right; the canary turns that around.
    below, top = 0.8, 1.0
    scores = np.full(selection.wanted + 1, top)
    scores[0], scores[1] = below, top if is_there else 0.0
    released = np.array([selection.choose(scores, highest=1.0, randomness=randomness).threshold for _ in range(looks)])
    nobody = released > 1 + 0.5 / selection.resolution
    return np.where(nobody, 0.0, np.where(released > below + 1e-9, 1.0, -1.0))


class ChoiceAttack(Attack):
    """Where chosen ids are released: canaries at the top of the scores, or blanks, and who of them is chosen."""

    name: ClassVar[str] = "choice"
    what: ClassVar[str] = (
        "Someone sees which records one selection chose, and guesses for each whether it was there with a top score."
    )

    def applies(self, target: Target) -> bool:
        return any(selection.released.choice is not None for selection in target.plan.selections)

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        delta = target.plan.setting.target_delta
        claims = {selection: claim_of_selection(selection, delta=delta) for selection in target.plan.selections}
        selection = max(
            (each for each in claims if each.released.choice is not None), key=lambda each: claims[each].epsilon
        )
        randomness, rounds = randomness_of(effort, stream=3), max(1, 4 * effort.looks // _TOGETHER)
        seen = [_chosen(selection, randomness) for _ in range(rounds)]
        evidence = np.concatenate([each for each, _ in seen])
        there = np.concatenate([each for _, each in seen])
        return finding(
            self,
            claims[selection],
            evidence[there],
            evidence[~there],
            runs=rounds,
            seconds=time.monotonic() - start,
            gaussian=False,
            is_about_plan=False,
        )


def _chosen(selection: Selection, randomness: Randomness) -> tuple[Evidence, NDArray[np.bool_]]:
    """Evidence about a pool of canaries from one selection, and who of them was there."""
    share = selection.query_size / selection.unlabelled
    smaller = replace(selection, query_size=max(1, round(share * _TOGETHER)), unlabelled=_TOGETHER)
    there = randomness.integers(2, _TOGETHER).astype(np.bool_)
    chosen = smaller.choose(there.astype(np.float64), highest=1.0, randomness=randomness)
    taken = np.isin(np.arange(_TOGETHER), np.concatenate([chosen.to_label, chosen.retired]))
    return choice_evidence(smaller, chosen, np.ones(_TOGETHER), taken), there
