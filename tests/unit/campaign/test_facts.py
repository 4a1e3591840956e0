"""Facts: each is written and read without loss, and says nothing private where it should not."""

import pytest
from small_facts import charged_selection, charged_training, created, selected

from dpal.campaign.facts import (
    KINDS,
    Answered,
    Closed,
    Evaluated,
    Fact,
    Finished,
    GivenUp,
    Produced,
    Resumed,
    Trained,
    Withdrawn,
    from_text,
    to_text,
)
from dpal.errors import DamagedCampaign

MODEL = {"charge": 4, "phase": 0, "sha256": "a" * 64, "export_sha256": "b" * 64, "engine": "fused", "seconds": 1.5}
FACTS = [
    created(seed=7, initial=("r1", "r2")),
    charged_selection(),
    charged_training(1),
    selected(2, "ä", "b", retired=("c",)),
    Answered(source="labels.csv", answers={"ä": 1, "b": "skip", "c": (0.0, 1.0)}),
    Closed(group=0),
    Produced(**MODEL),
    Trained(**MODEL, file="checkpoints/phase-1.safetensors"),
    Evaluated(phase=0, records=10, metrics={"accuracy": 0.1 + 0.2}),
    Finished(),
    Resumed(charge=4),
    Withdrawn(ids=("b",), reason="consent withdrawn"),
    GivenUp(charge=4, phase=0, reason="too slow", settings="s" * 64),
]


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


def test_equal_answers_have_different_texts() -> None:
    """The chain's hash is shown: without a salt it would confirm a guessed label, or who was withdrawn."""
    for fact in (Answered(source="x", answers={"a": 1}), Withdrawn(ids=("a",), reason="")):
        again = type(fact)(**{name: value for name, value in fact.body().items() if name != "salt"})
        assert to_text(again) != to_text(fact)
