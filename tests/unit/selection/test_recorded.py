"""A selection of the user's own, read from a document: enough to account for it, and never enough to run it."""

import json
from typing import Any

import numpy as np
import pytest
from selections import seeded

from dpal.errors import DpalError, InvalidArgument
from dpal.privacy.mechanisms import Laplace
from dpal.selection.recorded import RecordedSelection
from dpal.selection.selection import SelectionBudget

DOCUMENT: dict[str, Any] = {
    "mechanism": "clinic.selections:Careful",
    "query_size": 5,
    "unlabelled": 100,
    "private": True,
    "weight": 2,
    "share": 0.25,
    "released": {"choice": {"mechanism": "laplace", "epsilon": 0.5}, "threshold": None},
}


def test_what_it_releases_is_what_the_document_says() -> None:
    selection = RecordedSelection.from_json(DOCUMENT)
    assert selection.released.mechanisms() == (Laplace(epsilon=0.5),)
    assert selection.kind() == "clinic.selections:Careful"
    assert selection.parameters() == {"weight": 2, "share": 0.25}


def test_it_is_written_again_to_the_letter() -> None:
    """A plan's hash is over these letters: a whole number must not become 2.0."""
    written = RecordedSelection.from_json(DOCUMENT).to_json()
    assert json.dumps(written, sort_keys=True) == json.dumps(DOCUMENT, sort_keys=True)


@pytest.mark.parametrize(
    "change",
    [
        {"released": None},
        {"released": {"choice": None}},
        {"released": {"choice": None, "threshold": None, "more": None}},
        {"released": {"choice": {"mechanism": "laplace", "epsilon": -1}, "threshold": None}},
        {"private": False},
        {"private": None},
        {"private": 1},
        {"query_size": 101},
        {"query_size": 0},
        {"unlabelled": None},
        {"weight": "heavy"},
        {"weight": float("nan")},
    ],
    ids=str,
)
def test_a_document_that_says_too_little_or_nonsense_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        RecordedSelection.from_json({**DOCUMENT, **change})


def test_choosing_and_planning_need_the_code() -> None:
    selection = RecordedSelection.from_json(DOCUMENT)
    for attempt in (
        selection.lift,
        lambda: selection.choose(np.linspace(0, 1, 100), highest=1.0, randomness=seeded()),
    ):
        with pytest.raises(
            DpalError, match=r"clinic\.selections:Careful is not dpal's own, and its code was not imported"
        ):
            attempt()
    budget = SelectionBudget(epsilon=1.0, query_sizes=(5,), unlabelled=(100,), accounting="branch", order=8.0)
    with pytest.raises(InvalidArgument, match="a kind that can be planned"):
        RecordedSelection.plan(budget)
