"""Acquisition functions that are not dpal's: each record is scored alone, so that no other record is in reach.

A score that depends on other records (scaled by the pool's largest score, say) would let one record decide which others
are chosen, and no selection's ε covers that.
"""

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument, MixesRecords
from dpal.selection.acquisition import Acquisition
from dpal.selection.registry import ACQUISITIONS

Array = NDArray[np.float64]
# As dpal comes: what is added to the registry later is still foreign.
_OWN = frozenset(ACQUISITIONS.values())
_SEED = 20_261_116
_MADE_UP = 40
_SIZES = (2, 3, 7, 16, 33)


def is_foreign(acquisition: Acquisition) -> bool:
    """Whether this is not one of dpal's own acquisition functions; a subclass of one is foreign."""
    return type(acquisition) not in _OWN


def scores_by_record(acquisition: Acquisition, probabilities: NDArray[np.floating]) -> Array:
    """The scores of records with these class probabilities. Foreign code sees one record at a time, and its own copy.

    A record for which foreign code fails or does not give a number scores 0. That is not an error: an error would
    reveal that there is such a record.
    """
    if not is_foreign(acquisition):
        return acquisition.scores(probabilities)
    count, highest = np.shape(probabilities)[-2], acquisition.highest
    scores = np.zeros(count)
    for row in range(count):
        try:
            # Another copy for every record: what one of them leaves behind, none of the others meets.
            score = float(_scores(deepcopy(acquisition), _rows(probabilities, [row]))[0])
        except Exception:
            score = 0.0
        scores[row] = min(max(score, 0.0), highest) if np.isfinite(score) else 0.0
    return scores


def require_separate_records(acquisition: Acquisition) -> None:
    """Refuse foreign code whose score of a record changes, by a single bit, with the records around it or before it.

    All of this is on made-up probabilities. Real records are scored one by one anyway; this says why in advance.
    """
    if not is_foreign(acquisition):
        return
    made_up = _made_up(acquisition)
    name, count = type(acquisition).__qualname__, made_up.shape[-2]
    bounds = (acquisition.passes, acquisition.highest, acquisition.clip)
    if not (np.isfinite(bounds).all() and 0 < acquisition.clip <= acquisition.highest):
        raise InvalidArgument(f"clip and highest of {name}", bounds[:0:-1], "above 0, and clip at most highest")
    alone = np.asarray([_checked(acquisition, made_up, [row])[0] for row in range(count)])
    for what, rows in _companies(count, alone):
        if not np.array_equal(_checked(acquisition, made_up, rows), alone[rows]):
            raise MixesRecords(
                f"The acquisition function {name} gives a record another score {what}. A record's score must depend on "
                "that record alone, to the last bit: do not use the largest, smallest or mean value over records, "
                "ranks, or anything kept from earlier calls, and write (probabilities * weights).sum(axis=-1) in place "
                "of a matrix product. Nothing was charged."
            )
    if not np.array_equal(scores_by_record(acquisition, made_up), alone):
        raise InvalidArgument(
            f"the acquisition function {name}", "another one once it is copied", "one that copies well"
        )
    if (acquisition.passes, acquisition.highest, acquisition.clip) != bounds:
        raise MixesRecords(
            f"passes, highest or clip of the acquisition function {name} changed while it scored made-up records. They "
            "must be constants. Nothing was charged."
        )


def _companies(count: int, alone: Array) -> Iterator[tuple[str, list[int]]]:
    """Which made-up records are scored together, in words and as rows."""
    everyone = list(range(count))
    for row in everyone:
        yield "when it is scored again", [row]
    yield "together with others", everyone
    yield "in another order", everyone[::-1]
    yield "in another order", np.random.default_rng(_SEED).permutation(count).tolist()
    for size in _SIZES:
        for start in range(0, count, size):
            yield f"in a batch of {len(everyone[start : start + size])}", everyone[start : start + size]
    extremes = [int(np.argmin(alone)), int(np.argmax(alone))]
    for row in everyone:
        for other in extremes:
            yield "next to a record with an extreme score", [row, other]
            yield "next to a record with an extreme score", [other, row]
    # Once more: by now, whatever is kept from earlier calls has met every record in every company.
    for row in everyone:
        yield "when it is scored again", [row]


def _made_up(acquisition: Acquisition) -> Array:
    """Probabilities from even to certain, both ends included: (records, classes), or (passes, records, classes)."""
    rng = np.random.default_rng(_SEED)
    passes, classes = acquisition.passes, acquisition.classes
    # What a sure network says: one class, or with several labels none or all of them.
    sure = np.outer([0.0, 1.0], np.ones(classes)) if acquisition.multi_label else np.eye(classes)
    if acquisition.multi_label:
        records = [rng.beta(0.4, 0.4, (passes, classes)) for _ in range(_MADE_UP)]
    else:
        records = [rng.dirichlet(np.full(classes, (0.1, 1.0, 10.0)[row % 3]), passes) for row in range(_MADE_UP)]
    ends = [np.tile(row, (passes, 1)) for row in (sure[0], sure[-1], sure.mean(axis=0))]
    # Passes that are sure and contradict each other: the most that they can disagree.
    ends.append(sure[np.arange(passes) % len(sure)])
    probabilities = np.stack([*records, *ends], axis=1)
    return probabilities[0] if passes == 1 else probabilities


def _checked(acquisition: Acquisition, probabilities: Array, rows: list[int]) -> Array:
    scores = _scores(acquisition, _rows(probabilities, rows))
    if not (np.isfinite(scores) & (scores >= 0) & (scores <= acquisition.highest)).all():
        allowed = f"numbers from 0 to its highest, {acquisition.highest:g}"
        raise InvalidArgument(f"a score of {type(acquisition).__qualname__} on made-up records", "outside", allowed)
    return scores


def _scores(acquisition: Acquisition, probabilities: Array) -> Array:
    scores = np.asarray(acquisition.scores(probabilities), dtype=np.float64)
    if scores.shape != probabilities.shape[-2:-1]:
        name = type(acquisition).__qualname__
        raise InvalidArgument(f"the shape of the scores of {name}", scores.shape, "one score per record")
    return scores


def _rows(probabilities: NDArray[np.floating], rows: list[int]) -> Array:
    """These records in an array of their own: a view would have the whole pool behind it."""
    return np.array(np.asarray(probabilities)[..., rows, :], dtype=np.float64)
