"""Facts: each is written and read without loss, and neither its repr nor its hash says anything private."""

import json

import pytest
from small_facts import charged_selection, charged_training, created, selected

from dpal.campaign.facts import (
    KINDS,
    Answered,
    Arranged,
    ChargedMean,
    Closed,
    Evaluated,
    Fact,
    Finished,
    GivenUp,
    MeanReleased,
    Produced,
    Resumed,
    Scored,
    Selected,
    Trained,
    WentOn,
    Withdrawn,
    from_text,
    to_text,
)
from dpal.errors import DamagedCampaign
from dpal.labels.people import Arrangement, Opinion, Person

MODEL = {"charge": 4, "phase": 0, "sha256": "a" * 64, "export_sha256": "b" * 64, "engine": "fused", "seconds": 1.5}
FACTS = [
    created(seed=7, initial=("r1", "r2")),
    ChargedMean(noise_multiplier=10.0),
    MeanReleased(charge=2, mean=(0.1 + 0.2, -0.0)),
    charged_selection(),
    charged_training(1),
    created(large=True),
    Scored(charge=2, scores="f" * 64),
    selected(2, "ä", "b", retired=("c",)),
    Answered(source="labels.csv", answers={"ä": 1, "b": "skip", "c": (0.0, 1.0)}),
    Answered(
        source="page",
        answers={"a": None},
        opinions=(Opinion(number=2, at="", person="A", who="1", role="expert", question="a", answer=(1.0,)).to_json(),),
        inbox=2,
    ),
    Arranged(**Arrangement(people=(Person(name="A"),)).to_json(), inbox=1),
    Closed(group=0),
    Produced(**MODEL),
    Trained(**MODEL, file="checkpoints/phase-1.safetensors"),
    Evaluated(phase=0, records=10, metrics={"accuracy": 0.1 + 0.2}),
    Finished(),
    Resumed(charge=4),
    Withdrawn(ids=("b",), reason="consent withdrawn"),
    GivenUp(charge=4, phase=0, reason="too slow", settings="s" * 64),
    WentOn(phase=0, settings="s" * 64),
]
PRIVATE = {
    "selected": {"charge": 3, "group": 1, "to_label": ("r1", "r2"), "retired": (), "threshold": 0.5},
    "answered": {"source": "files", "answers": {"r1": 0}},
    "withdrawn": {"ids": ("r1",), "reason": "asked to"},
}


def test_every_kind_reads_back_as_itself() -> None:
    assert {fact.kind for fact in FACTS} == set(KINDS)
    for fact in FACTS:
        again = from_text(fact.kind, to_text(fact))
        assert again == fact and type(again) is type(fact)
        # The chain hashes this text: it must be the same every time.
        assert to_text(again) == to_text(fact)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("answered", '{"source": "x", "answers": {"secret-name": {"no": "answer"}}}'),
        ("answered", '{"source": "x", "answers": "secret-name"}'),
        ("closed", '{"secret-name": 1}'),
        ("closed", "secret-name"),
        ("closed", "[]"),
        ("invented", '{"secret-name": 1}'),
    ],
)
def test_a_fact_that_cannot_be_read_is_not_quoted(kind: str, text: str) -> None:
    with pytest.raises(DamagedCampaign, match=f"of the kind '{kind}' cannot be read") as caught:
        from_text(kind, text)
    assert "secret-name" not in str(caught.value)


def test_numbers_that_json_does_not_know_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_text(Evaluated(phase=0, records=1, metrics={"auc": float("nan")}))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.kind)
def test_no_id_answer_or_reason_is_in_a_repr(fact: Fact) -> None:
    assert not any(word in repr(fact) for word in ("ä", "'b'", "r1", "skip", "consent", "too slow"))


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


def test_evaluations_from_before_there_were_counts_can_be_read() -> None:
    old = from_text("evaluated", '{"phase": 0, "records": 10, "metrics": {"accuracy": 0.5}}')
    assert old == Evaluated(phase=0, records=10, metrics={"accuracy": 0.5})
