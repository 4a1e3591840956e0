"""How good the newest model is on the public held-out set: against the majority class, by class, by confidence."""

from collections.abc import Sequence
from typing import Any

from dpal.campaign.chance import in_words, verdict_of
from dpal.campaign.facts import Evaluated
from dpal.campaign.metrics import calibration_error, majority, recalls


def measurements(evaluated: Sequence[Evaluated]) -> list[dict[str, Any]]:
    """The scores after each phase."""
    return [
        {
            "phase": fact.phase + 1,
            "records": fact.records,
            **fact.metrics,
            **({} if (error := calibration_error(fact)) is None else {"calibration_error": error}),
        }
        for fact in evaluated
    ]


def held_out_data(evaluated: Sequence[Evaluated], classes: Sequence[str]) -> dict[str, Any] | None:
    """What the report says about the newest model and its held-out set. None if nothing was measured."""
    if not evaluated:
        return None
    newest = evaluated[-1]
    most, verdict = majority(newest), verdict_of(newest)
    return {
        "phase": newest.phase + 1,
        "records": newest.records,
        "in_words": [in_words(evaluated, place, classes) for place in range(len(evaluated))],
        "majority_class": None if most is None else classes[most[0]],
        "majority": None if most is None else most[1],
        # What a model that knows nothing has, and how far above it luck may come.
        "chance": None if verdict is None else verdict.chance,
        "luck": None if verdict is None else verdict.luck,
        "is_chance": verdict is not None and verdict.is_chance,
        "by_class": _by_class(newest, classes),
        "several_labels": bool(newest.class_areas),
        "calibration_error": calibration_error(newest),
        "calibration": [
            {"answers": answers, "right": right, "confidence": confidence}
            for answers, right, confidence in zip(
                newest.bin_answers, newest.bin_right, newest.bin_confidence, strict=True
            )
            if answers
        ],
    }


def _by_class(fact: Evaluated, classes: Sequence[str]) -> list[dict[str, Any]]:
    """Recall and counts; with several labels per record, the AUC. Empty if they were not recorded."""
    if fact.class_areas:
        scores = zip(classes, fact.class_records, fact.class_areas, strict=True)
        return [{"class": name, "records": records, "auc": area} for name, records, area in scores]
    counts = zip(classes, fact.class_records, fact.class_right, recalls(fact), strict=bool(fact.class_right))
    return [
        {"class": name, "records": records, "right": right, "recall": recall} for name, records, right, recall in counts
    ]


def difference_in_words(data: dict[str, Any]) -> str | None:
    """The end of this campaign against that of its baseline. None without one, or if they measure different things."""
    baseline = data.get("baseline")
    if baseline is None or not baseline["metrics"] or not data["metrics"]:
        return None
    own, other = data["metrics"][-1], baseline["metrics"][-1]
    name = next((name for name in ("accuracy", "auc") if name in own and name in other), None)
    if name is None:
        return None
    points = 100 * (own[name] - other[name])
    return (
        f"{'Accuracy' if name == 'accuracy' else 'Mean AUC'} at the end: {own[name]:.1%}; {baseline['campaign']}, the "
        f"baseline: {other[name]:.1%}. That is {points:+.1f} points from one campaign each, which may be luck: "
        "dpal compare takes several of each."
    )
