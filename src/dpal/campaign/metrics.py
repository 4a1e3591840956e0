"""How good a model is on a public held-out set."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from dpal.errors import InvalidArgument


def metrics_of(
    logits: NDArray[np.float32],
    labels: NDArray[np.generic],
    *,
    multi_label: bool,
    classes: tuple[str, ...],
    evaluated: Sequence[str] | None = None,
) -> dict[str, float]:
    """Accuracy and balanced accuracy; for several labels, the mean AUC over the evaluated classes."""
    if multi_label:
        return _multi_label(logits, np.asarray(labels, dtype=np.float64), classes, evaluated)
    known = np.asarray(labels, dtype=np.int64)
    right = logits.argmax(axis=1) == known
    by_class = [float(right[known == number].mean()) for number in np.unique(known)]
    return {"accuracy": float(right.mean()), "balanced_accuracy": float(np.mean(by_class))}


def _multi_label(
    logits: NDArray[np.float32], labels: NDArray[np.float64], classes: tuple[str, ...], evaluated: Sequence[str] | None
) -> dict[str, float]:
    wanted = list(classes) if evaluated is None else list(evaluated)
    unknown = [name for name in wanted if name not in classes]
    if unknown:
        raise InvalidArgument("the classes to evaluate", unknown, f"of {', '.join(classes)}")
    areas: list[float] = []
    for name in wanted:
        column = classes.index(name)
        present = labels[:, column] >= 0.5
        # A class that all records have, or none, has no AUC.
        if present.any() and not present.all():
            areas.append(_area(logits[:, column], present))
    return {"auc": float(np.mean(areas))} if areas else {}


def _area(scores: NDArray[np.float32], present: NDArray[np.bool_]) -> float:
    """The probability that a record with the class scores above one without it; ties count half."""
    ranks = rankdata(scores)
    positives = int(present.sum())
    return float((ranks[present].sum() - positives * (positives + 1) / 2) / (positives * (len(present) - positives)))
