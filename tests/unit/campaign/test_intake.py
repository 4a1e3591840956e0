"""What waits in the inbox becomes facts, once, in order, and by the arrangement that held when it came."""

from pathlib import Path

import pytest
from small_campaigns import linear_campaign

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered, Arranged
from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import answer_entry, arrangement_entry, checked_answer, rearranged
from dpal.campaign.state import State
from dpal.labels.people import ARBITER, Arrangement, Person


class Desk:
    """Puts entries into a campaign's inbox."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign, self.inbox, self.count = campaign, Inbox(campaign.folder), 0

    def put(self, body, person: str = "") -> None:
        self.count += 1
        self.inbox.add(body, person=person, key=f"key-{self.count:08d}", above=self.campaign.state().inbox)

    def person(self, name: str, role: str = "expert") -> None:
        self.put(arrangement_entry(add={"name": name, "role": role, "generation": 0, "identity": self.count + 1}))

    def says(self, person: str, question: str, answer: object, note: str = "", role: str = "") -> None:
        role = role or (ARBITER if person == "R" else "expert")
        self.put(answer_entry(question, answer, note, who=person, role=role), person)

    def taken_in(self) -> State:
        self.campaign.take_in()
        return self.campaign.state()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    campaign = linear_campaign(tmp_path / "c", oracle="files")
    campaign.run()
    return Desk(campaign)


def asked(desk: Desk) -> tuple[str, ...]:
    return desk.campaign.state().groups[0]


def test_answers_become_facts_once(desk: Desk) -> None:
    first, second, *_ = asked(desk)
    desk.person("A")
    desk.says("A", first, 1, "clear")
    desk.says("A", second, "skip")
    state = desk.taken_in()
    assert state.answers == {first: 1, second: "skip"}
    assert state.opinions[first]["A"].note == "clear"
    assert state.inbox == 3 and desk.taken_in().last == state.last
    assert desk.campaign.verify().holds
    kinds = [type(entry.fact) for entry in desk.campaign.reader.recorded[-2:]]
    assert kinds == [Arranged, Answered]


def test_run_takes_them_in(desk: Desk) -> None:
    desk.person("A")
    for question in asked(desk):
        desk.says("A", question, 1)
    assert desk.campaign.run(go_on=True).stage == "waiting-for-labels"
    assert len(desk.campaign.state().trained) == 1


def test_an_answer_can_be_taken_back_and_given_again(desk: Desk) -> None:
    question = asked(desk)[0]
    desk.person("A")
    desk.says("A", question, 1)
    assert desk.taken_in().answers == {question: 1}
    desk.says("A", question, None)
    state = desk.taken_in()
    assert state.answers == {} and question in state.missing(0)
    desk.says("A", question, 0)
    assert desk.taken_in().answers == {question: 0}
    # From what to what: every opinion stays in the chain.
    facts = [entry.fact for entry in desk.campaign.reader.recorded if isinstance(entry.fact, Answered)]
    assert [opinion["answer"] for fact in facts for opinion in fact.opinions] == [1, None, 0]


def test_experts_who_differ_and_an_arbiter(desk: Desk) -> None:
    question = asked(desk)[0]
    for name in "AB":
        desk.person(name)
    desk.person("R", ARBITER)
    desk.put(arrangement_entry(see="everyone"))
    desk.says("A", question, 1)
    assert desk.taken_in().answers == {}
    desk.says("B", question, 0)
    assert desk.taken_in().answers == {}
    desk.says("R", question, 0)
    assert desk.taken_in().answers == {question: 0}
    # The arbiter thinks again: it is open again.
    desk.says("R", question, None)
    assert desk.taken_in().answers == {}


def test_a_new_rule_decides_what_was_open(desk: Desk) -> None:
    question = asked(desk)[0]
    for name in "ABC":
        desk.person(name)
    desk.put(arrangement_entry(see="everyone", rule="unanimous"))
    for name, answer in (("A", 1), ("B", 1), ("C", 0)):
        desk.says(name, question, answer)
    assert desk.taken_in().answers == {}
    desk.put(arrangement_entry(rule="majority"))
    assert desk.taken_in().answers == {question: 1}
    # What was decided stays.
    desk.put(arrangement_entry(rule="unanimous"))
    assert desk.taken_in().answers == {question: 1}


def test_a_file_decides_until_an_arbiter_or_another_file_says_otherwise(desk: Desk) -> None:
    question = asked(desk)[0]
    desk.person("A")
    desk.person("R", ARBITER)
    desk.campaign.add_answers({question: 1}, source="week.csv")
    desk.says("A", question, 0)
    assert desk.taken_in().answers == {question: 1}
    desk.says("R", question, 0)
    assert desk.taken_in().answers == {question: 0}
    desk.campaign.add_answers({question: 1}, source="week.csv")
    assert desk.campaign.state().answers == {question: 1}


def test_what_waits_is_taken_in_before_a_file_is(desk: Desk) -> None:
    question = asked(desk)[0]
    desk.person("A")
    desk.says("A", question, 0)
    assert desk.campaign.add_answers({question: 1}, source="week.csv")["corrected"] == 1
    assert desk.campaign.state().answers == {question: 1}


def test_what_is_not_valid_is_passed_over(desk: Desk) -> None:
    first, withdrawn, *_ = asked(desk)
    state = desk.campaign.state()
    stranger = next(name for name in desk.campaign.contents().ids if name not in state.groups[0])
    desk.person("A")
    desk.campaign.withdraw([withdrawn])
    for question, answer in ((withdrawn, 1), (stranger, 1), ("nobody", 1), (first, 2), (first, True), (first, [1.0])):
        desk.says("A", question, answer)
    desk.put({"kind": "something newer"})
    state = desk.taken_in()
    assert state.answers == {} and state.opinions == {} and state.inbox == desk.count
    desk.says("A", first, 1)
    assert desk.taken_in().answers == {first: 1}


def test_people_come_go_and_get_new_links() -> None:
    arrangement = rearranged(
        Arrangement(), arrangement_entry(add={"name": "A", "role": "expert", "generation": 0, "identity": 7})
    )
    arrangement = rearranged(arrangement, arrangement_entry(renew="A"))
    assert arrangement.people == (Person(name="A", generation=1, identity=7),)
    assert rearranged(arrangement, arrangement_entry(renew="B")) == arrangement
    assert rearranged(arrangement, arrangement_entry(see="everyone")).see == "everyone"
    assert rearranged(arrangement, arrangement_entry(remove="A")) == Arrangement()


def test_a_role_is_the_one_of_the_time(desk: Desk) -> None:
    """Somebody who becomes an arbiter decides nothing by what they said before, and one who leaves has decided."""
    question, other, *_ = asked(desk)
    desk.person("A")
    desk.person("B")
    desk.put(arrangement_entry(see="everyone"))
    desk.says("A", question, 0)
    desk.says("B", question, 1)
    desk.put(arrangement_entry(remove="A"))
    desk.person("A", ARBITER)
    assert desk.taken_in().answers == {}
    desk.says("R", other, 1)
    desk.put(arrangement_entry(remove="R"))
    desk.says("A", other, 0, "the same again", role="expert")
    assert desk.taken_in().answers == {other: 1}


def test_two_people_of_one_name_at_the_same_moment(desk: Desk) -> None:
    for name in ("Ann", "ann", "Ann"):
        desk.person(name)
    desk.put({"kind": "arrangement", "add": {"nonsense": 1}})
    desk.put({"kind": "arrangement", "overlap": 7})
    state = desk.taken_in()
    # The first one counts, with the link that was given to them; nothing is stuck.
    assert [(person.name, person.identity) for person in state.arrangement.people] == [("Ann", 1)]
    assert desk.campaign.verify().holds


def test_a_table_protects_a_label_also_where_it_agrees(desk: Desk) -> None:
    question = asked(desk)[0]
    desk.person("A")
    desk.says("A", question, 1)
    counts = desk.campaign.add_answers({question: 1}, source="week.csv")
    assert counts == {"new": 0, "corrected": 0, "unchanged": 1, "withdrawn": 0}
    desk.says("A", question, 0)
    assert desk.taken_in().answers == {question: 1}
    # Imported again, it changes nothing, and nothing is recorded.
    last = desk.campaign.state().last
    desk.campaign.add_answers({question: 1}, source="week.csv")
    assert desk.campaign.state().last == last


def test_a_tables_label_is_back_when_an_arbiter_takes_theirs_back(desk: Desk) -> None:
    question = asked(desk)[0]
    desk.says("R", question, 0)
    assert desk.taken_in().answers == {question: 0}
    desk.campaign.add_answers({question: 1}, source="week.csv")
    desk.says("R", question, None)
    assert desk.taken_in().answers == {question: 1}


def test_taking_in_records_nothing_that_does_not_change(desk: Desk) -> None:
    first, second, *_ = asked(desk)
    desk.person("A")
    desk.person("B")
    desk.put(arrangement_entry(see="everyone"))
    desk.says("A", first, 1)
    last = desk.taken_in().last
    desk.says("A", second, 1)
    # One fact for one batch of answers, although a question is open.
    assert desk.taken_in().last == last + 1


@pytest.mark.parametrize("given", [[10**400], 10**400])
def test_numbers_without_end_are_no_answers(given: object) -> None:
    with pytest.raises(ValueError):
        checked_answer(given, ("no", "yes"), multi_label=isinstance(given, list))


@pytest.mark.parametrize("given", [True, 2, -1, "no", "x", [1], 1.0, {}, float("nan")])
def test_only_numbers_of_classes_and_two_words_are_answers(given: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        checked_answer(given, ("no", "yes"), multi_label=False)


def test_answers_are_by_number_so_a_class_may_be_called_skip() -> None:
    assert checked_answer(1, ("no", "skip"), multi_label=False) == 1
    assert checked_answer("skip", ("no", "skip"), multi_label=False) == "skip"
    assert checked_answer([0, 1], ("no", "skip"), multi_label=True) == (0.0, 1.0)
    for wrong in ([0], [0, 2], [0, float("nan")], 1, ["a", "b"]):
        with pytest.raises(ValueError):
            checked_answer(wrong, ("no", "skip"), multi_label=True)
