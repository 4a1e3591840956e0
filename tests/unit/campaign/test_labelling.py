"""The one door for labels: whoever brings answers, they are checked and recorded here, all or none."""

from pathlib import Path

import pytest
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign import labelling
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered
from dpal.campaign.writer import Writer
from dpal.errors import LabelsRefused


@pytest.fixture
def waiting(tmp_path: Path) -> Campaign:
    campaign = Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    assert campaign.run().is_waiting
    return campaign


def test_answers_are_new_corrected_or_unchanged(waiting: Campaign) -> None:
    first, second, third, fourth, *_ = waiting.state().missing(0)
    counts = waiting.add_answers({first: "yes", second: 0, third: "skip"}, source="page")
    assert counts == {"new": 3, "corrected": 0, "unchanged": 0, "withdrawn": 0}
    waiting.withdraw(fourth)
    # A campaign that was opened without its data takes answers too.
    counts = Campaign(waiting.folder).add_answers({first: "no", second: "no", fourth: "yes"}, source="page")
    assert counts == {"new": 0, "corrected": 1, "unchanged": 1, "withdrawn": 1}
    assert waiting.state().answers == {first: 0, second: 0, third: "skip"}
    assert waiting.status().internal.corrected == 1


def test_nothing_is_recorded_if_anything_is_wrong(waiting: Campaign) -> None:
    state = waiting.state()
    good, bad, *_ = state.missing(0)
    other = next(record_id for record_id in linear_pool().ids.tolist() if record_id not in state.taken())
    with pytest.raises(LabelsRefused, match=r"(?s)2 problem.*page.*was not asked for.*'.*maybe") as caught:
        waiting.add_answers({good: "yes", bad: "maybe", other: "yes"}, source="page")
    assert "None of its labels were taken" in str(caught.value)
    assert waiting.state() == state


def test_answers_that_change_nothing_record_nothing(waiting: Campaign) -> None:
    first, *_ = waiting.state().missing(0)
    waiting.add_answers({first: "yes"}, source="page")
    last = waiting.state().last
    assert waiting.add_answers({first: 1}, source="page")["unchanged"] == 1
    assert waiting.state().last == last


def test_files_and_oracles_use_the_same_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are recorded nowhere else."""
    recorded: list[str] = []
    add, through = Writer.add, labelling.record_answers
    inside = False

    def watched_add(self: Writer, fact: object, **options: object) -> int:
        if isinstance(fact, Answered):
            assert inside
            recorded.append(fact.source)
        return add(self, fact, **options)  # type: ignore[arg-type]

    def door(*args: object, **options: object) -> dict[str, int]:
        nonlocal inside
        inside = True
        try:
            return through(*args, **options)  # type: ignore[arg-type]
        finally:
            inside = False

    monkeypatch.setattr(Writer, "add", watched_add)
    for module in ("labelling", "recorded_answers"):
        monkeypatch.setattr(f"dpal.campaign.{module}.record_answers", door)
    campaign = Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    campaign.run()
    first, *_ = campaign.state().missing(0)
    (tmp_path / "labels.csv").write_text(f"id,label\n{first},yes\n")
    campaign.import_labels(tmp_path / "labels.csv", linear_pool())
    again = Campaign.open(tmp_path / "c", pool=linear_pool(), model=linear_model(), oracle="simulated")
    assert again.run().stage == "finished"
    assert recorded[:2] == ["labels.csv", "simulated"]
