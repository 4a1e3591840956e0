"""Acquisition functions and kinds of selection by name, and selections from a plan's JSON."""

from collections.abc import Mapping
from typing import Any, cast

from dpal.errors import InvalidArgument
from dpal.imports import named
from dpal.selection.acquisition import Acquisition, Bald, Entropy, LeastConfidence, MinimumMargin, Random
from dpal.selection.baselines import HighestScores, RandomSelection
from dpal.selection.cut import CutSelection
from dpal.selection.exponential import ExponentialSelection
from dpal.selection.noisy_scores import GaussianSelection, LaplaceSelection, SampledGaussianSelection
from dpal.selection.recorded import RecordedSelection
from dpal.selection.selection import Selection
from dpal.selection.threshold import ThresholdSelection

ACQUISITIONS: dict[str, type[Acquisition]] = {
    kind.name: kind for kind in (Random, LeastConfidence, MinimumMargin, Entropy, Bald)
}

SELECTIONS: dict[str, type[Selection]] = {
    kind.name: kind
    for kind in (
        CutSelection,
        ThresholdSelection,
        LaplaceSelection,
        GaussianSelection,
        SampledGaussianSelection,
        ExponentialSelection,
        RandomSelection,
        HighestScores,
    )
}


def selection_kind(name: object) -> type[Selection]:
    """The class of a selection, by its name or its import path."""
    kind = named("selection", name, SELECTIONS)
    if not isinstance(kind, type) or not issubclass(kind, Selection):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("selection", name, "a class derived from dpal.selection.Selection")
    return kind


def selection_from_json(document: object, *, import_code: bool = False) -> Selection:
    """The selection that `to_json` wrote. Code that is not dpal's is imported only to run it.

    Otherwise what the document says it releases is enough: a document from somebody else must not decide which code
    runs here.
    """
    if not isinstance(document, Mapping):
        raise InvalidArgument("a selection", document, "an object")
    given = cast("Mapping[str, Any]", document)
    name = given.get("mechanism")
    if not isinstance(name, str) or (name not in SELECTIONS and ":" not in name):
        raise InvalidArgument("mechanism", name, f"one of {', '.join(SELECTIONS)}, or an import path")
    if name not in SELECTIONS and not import_code:
        return RecordedSelection.from_json(given)
    return selection_kind(name).from_json(given)
