"""Facts as text: what the chain's hash is made of, and what it must not confirm."""

import json

import pytest

from dpal.campaign.facts import Answered, Fact, Selected, Withdrawn, from_text, to_text

PRIVATE = {
    "selected": {"charge": 3, "group": 1, "to_label": ("r1", "r2"), "retired": (), "threshold": 0.5},
    "answered": {"source": "files", "answers": {"r1": 0}},
    "withdrawn": {"ids": ("r1",), "reason": "asked to"},
}


@pytest.mark.parametrize("kind", [Selected, Answered, Withdrawn])
def test_a_hash_does_not_confirm_a_guess_about_records(kind: type[Fact]) -> None:
    # Someone who guesses all of a private fact still does not know its text, so a published hash says nothing.
    texts = [to_text(kind(**PRIVATE[kind.kind])) for _ in range(2)]
    assert texts[0] != texts[1]
    assert all(len(json.loads(text)["salt"]) >= 32 for text in texts)
    assert to_text(from_text(kind.kind, texts[0])) == texts[0]


def test_selections_that_chose_the_same_are_equal() -> None:
    assert Selected(**PRIVATE["selected"]) == Selected(**PRIVATE["selected"])
    # Campaigns from before there was a salt can still be read.
    without = json.loads(to_text(Selected(**PRIVATE["selected"])))
    del without["salt"]
    assert from_text("selected", json.dumps(without)) == Selected(**PRIVATE["selected"])
