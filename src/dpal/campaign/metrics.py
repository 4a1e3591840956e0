"""How good a model is on a public held-out set."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.facts import Evaluated
from dpal.errors import InvalidArgument

BINS = 10
# Digits of numbers that are only drawn.
_DIGITS = 6


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
        areas = [area for area in _areas(logits, np.asarray(labels), classes, evaluated) if area is not None]
        return {"auc": float(np.mean(areas))} if areas else {}
    known = np.asarray(labels, dtype=np.int64)
    right = logits.argmax(axis=1) == known
    by_class = [float(right[known == number].mean()) for number in np.unique(known)]
    return {"accuracy": float(right.mean()), "balanced_accuracy": float(np.mean(by_class))}


def evaluation_of(
    phase: int,
    logits: NDArray[np.float32],
    labels: NDArray[np.generic],
    *,
    multi_label: bool,
    classes: tuple[str, ...],
    evaluated: Sequence[str] | None = None,
) -> Evaluated:
    """The fact: metrics, and the counts by class and by confidence that they come from."""
    metrics = metrics_of(logits, labels, multi_label=multi_label, classes=classes, evaluated=evaluated)
    fact = Evaluated(phase=phase, records=len(labels), metrics=metrics)
    if multi_label:
        areas = _areas(logits, np.asarray(labels), classes, evaluated)
        present = np.asarray(labels, dtype=np.float64) >= _PRESENT
        used = [number for number, area in enumerate(areas) if area is not None]
        rounded = tuple(None if area is None else round(area, _DIGITS) for area in areas)
        fact = replace(
            fact,
            class_records=tuple(present.sum(axis=0).tolist()),
            class_areas=rounded,
            auc_deviation=_auc_deviation(logits[:, used], present[:, used]) if used else None,
        )
        return _with_bins(fact, 1 / (1 + np.exp(-logits[:, used].astype(np.float64).ravel())), present[:, used].ravel())
    known, answers = np.asarray(labels, dtype=np.int64), logits.argmax(axis=1)
    right = answers == known
    fact = replace(
        fact,
        class_records=_counts(known, len(classes)),
        class_right=_counts(known[right], len(classes)),
        class_answers=_counts(answers, len(classes)),
    )
    # The largest of the softmax.
    confidence = 1 / np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True)).sum(axis=1)
    return _with_bins(fact, confidence, right)


def recalls(fact: Evaluated) -> tuple[float | None, ...]:
    """By class, the share of its held-out records that are answered with it; None if there are none."""
    pairs = zip(fact.class_right, fact.class_records, strict=False)
    return tuple(right / records if records else None for right, records in pairs)


def majority(fact: Evaluated) -> tuple[int, float] | None:
    """The most frequent class of the held-out set, and the accuracy of always answering it. None if unknown."""
    if not fact.class_right or fact.records == 0:
        return None
    most = max(fact.class_records)
    return fact.class_records.index(most), most / fact.records


def calibration_error(fact: Evaluated) -> float | None:
    """The expected calibration error: how far confidence is from the share that is right, on average. None: unknown."""
    answers = sum(fact.bin_answers)
    if answers == 0:
        return None
    bins = zip(fact.bin_answers, fact.bin_right, fact.bin_confidence, strict=True)
    return sum(abs(right - count * confidence) for count, right, confidence in bins) / answers


# With several labels, a target from 0 to 1 says how likely the class is; from here on it counts as present.
_PRESENT = 0.5


def _counts(numbers: NDArray[np.int64], length: int) -> tuple[int, ...]:
    return tuple(np.bincount(numbers, minlength=length).tolist())


def _with_bins(fact: Evaluated, confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> Evaluated:
    """Answers by tenths of confidence; the last bin includes 1."""
    confidence = np.nan_to_num(confidence)
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    sums = np.bincount(place, weights=confidence, minlength=BINS)
    means = sums / np.maximum(np.bincount(place, minlength=BINS), 1)
    return replace(
        fact,
        bin_answers=_counts(place, BINS),
        bin_right=_counts(place[right], BINS),
        bin_confidence=tuple(round(mean, _DIGITS) for mean in means.tolist()),
    )


def _areas(
    logits: NDArray[np.float32], labels: NDArray[np.generic], classes: tuple[str, ...], evaluated: Sequence[str] | None
) -> list[float | None]:
    """The AUC of each class. None if it is not evaluated, or if all records have the class, or none."""
    wanted = list(classes) if evaluated is None else list(evaluated)
    unknown = [name for name in wanted if name not in classes]
    if unknown:
        raise InvalidArgument("the classes to evaluate", unknown, f"of {', '.join(classes)}")
    areas: list[float | None] = []
    for column, name in enumerate(classes):
        present = np.asarray(labels, dtype=np.float64)[:, column] >= _PRESENT
        has_area = name in wanted and present.any() and not present.all()
        areas.append(_area(logits[:, column], present) if has_area else None)
    return areas


def _auc_deviation(scores: NDArray[np.float32], present: NDArray[np.bool_]) -> float:
    """The standard deviation of the mean AUC over all ways to deal out the rows of scores to the records.

    An AUC is linear in ranks, and Σ a_i·b_π(i) and Σ c_i·d_π(i) have the covariance (a·c)(b·d) / (N − 1) for centred
    a, b, c and d. It counts that classes, and their scores, go together; ties are included.
    """
    from scipy.stats import rankdata

    ranks = rankdata(scores, axis=0)
    ranks -= ranks.mean(axis=0)
    labels = present - present.mean(axis=0)
    weights = 1 / (present.sum(axis=0) * (~present).sum(axis=0) * present.shape[1])
    variance = weights @ ((labels.T @ labels) * (ranks.T @ ranks)) @ weights / (len(present) - 1)
    return round(float(np.sqrt(max(variance, 0.0))), _DIGITS)


def _area(scores: NDArray[np.float32], present: NDArray[np.bool_]) -> float:
    """The probability that a record with the class scores above one without it; ties count half."""
    # Only here: it takes long to import, and who reads a campaign computes no AUC.
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    positives = int(present.sum())
    return float((ranks[present].sum() - positives * (positives + 1) / 2) / (positives * (len(present) - positives)))
