"""The desk: everyone sees their own questions in their own order, nobody reaches a record that was not asked."""

import io
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_campaigns import create, linear_campaign, linear_pool, small_pool

from dpal.campaign.arranging import renew_link
from dpal.campaign.campaign import Campaign
from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import arrangement_entry
from dpal.campaign.labelling_desk import LabellingDesk
from dpal.data.records import ArrayRecords
from dpal.errors import InvalidArgument, NotForYou, RecordsChanged
from dpal.labels.people import Person

KEY = "key-{:08d}"


def arrange(campaign: Campaign, *people: Person, **settings: object) -> None:
    inbox = Inbox(campaign.folder)
    changes = [{"add": asdict(each)} for each in people]
    for number, change in enumerate([*changes, *([settings] if settings else [])]):
        inbox.add(arrangement_entry(**change), person="", key=f"arrange-{number}-{len(inbox.after(0))}", above=0)


A, B = Person(name="A", identity=1), Person(name="B", identity=2)
ARBITER = Person(name="R", role="arbiter", identity=3)
OFFICER = Person(name="O", role="officer", identity=4)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Each of the eight questions is one expert's by chance; both have at least three."""
    while True:
        made = linear_campaign(tmp_path / "c", oracle="files")
        made.run()
        arrange(made, A, B, ARBITER, OFFICER)
        if all(len(desk_of(made).queue(expert)[0]) >= 3 for expert in (A, B)):
            return made
        shutil.rmtree(tmp_path / "c")


def desk_of(campaign: Campaign) -> LabellingDesk:
    return LabellingDesk(campaign.folder, pool=linear_pool())


def test_questions_are_split_in_an_order_of_their_own(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    of_a, of_b = desk.queue(A)[0], desk.queue(B)[0]
    assert sorted(of_a + of_b) == sorted(campaign.state().groups[0])
    assert desk.queue(ARBITER)[0] == desk.queue(OFFICER)[0] == []
    arrange(campaign, see="everyone")
    of_a, of_b = desk.queue(A)[0], desk.queue(B)[0]
    assert sorted(of_a) == sorted(of_b) == sorted(campaign.state().groups[0])
    assert of_a != of_b and of_a == desk_of(campaign).queue(A)[0]


def test_an_answer_leaves_the_queue_at_once_and_is_a_fact_later(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    name = desk.queue(A)[0][0]
    before = campaign.state().last
    desk.answer(A, name, 1, note="clear", key=KEY.format(1))
    assert name not in desk.queue(A)[0]
    assert [(desk.name_of(said), said.answer, said.note) for said in desk.queue(A)[1]] == [(name, 1, "clear")]
    assert campaign.state().last == before and desk.progress().decided == 1
    campaign.take_in()
    assert campaign.state().answers == {name: 1}
    assert [said.answer for said in desk.queue(A)[1]] == [1] and desk.progress().decided == 1
    desk.answer(A, name, None, note="", key=KEY.format(2))
    assert name in desk.queue(A)[0] and desk.queue(A)[1] == []


def test_an_answer_that_is_sent_twice_counts_once(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    name = desk.queue(A)[0][0]
    entries = {desk.answer(A, name, 1, note="", key=KEY.format(1)).number for _ in range(3)}
    assert len(entries) == 1 and len(Inbox(campaign.folder).after(0)) == 5


def test_nobody_reaches_what_is_not_theirs(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    of_b = desk.queue(B)[0][0]
    stranger = next(name for name in campaign.contents().ids if name not in campaign.state().groups[0])
    for person, name in (
        (A, of_b),
        (A, stranger),
        (A, "nobody"),
        (A, ""),
        (A, "\ud800"),
        (OFFICER, of_b),
        (ARBITER, of_b),
    ):
        for use in (
            lambda: desk.shown(person, name),  # noqa: B023
            lambda: desk.picture(person, name, 0),  # noqa: B023
            lambda: desk.answer(person, name, 1, note="", key=KEY.format(9)),  # noqa: B023
        ):
            with pytest.raises(NotForYou):
                use()
    assert len(Inbox(campaign.folder).after(0)) == 4


def test_a_withdrawn_record_is_gone(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    name = desk.queue(A)[0][0]
    campaign.withdraw([name])
    assert name not in desk.queue(A)[0]
    with pytest.raises(NotForYou):
        desk.shown(A, name)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"given": 2}, "the answer"),
        ({"given": True}, "the answer"),
        ({"given": {"a": 1}}, "the answer"),
        ({"note": "x" * 2001}, "the note"),
        ({"note": "\ud800"}, "the note"),
        ({"key": "short"}, "the key"),
        ({"key": "../../../etc/passwd"}, "the key"),
    ],
)
def test_wrong_answers_are_refused_and_not_quoted(campaign: Campaign, changed, message: str) -> None:
    desk = desk_of(campaign)
    given = {"given": 1, "note": "", "key": KEY.format(1)} | changed
    with pytest.raises(InvalidArgument, match=message) as caught:
        desk.answer(A, desk.queue(A)[0][0], given["given"], note=given["note"], key=given["key"])
    assert "passwd" not in str(caught.value) and "xxx" not in str(caught.value)
    assert len(Inbox(campaign.folder).after(0)) == 4


def test_links(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    token = desk.token(A)
    assert desk.person_with(token) == A
    assert desk.person_with("") is None and desk.person_with(token[:-1]) is None
    renew_link(campaign.reader, "A")
    assert desk.person_with(token) is None


def test_experts_who_differ_and_what_the_arbiter_sees(campaign: Campaign) -> None:
    arrange(campaign, see="everyone")
    desk = desk_of(campaign)
    name = desk.queue(A)[0][0]
    desk.answer(A, name, 1, note="", key=KEY.format(1))
    assert desk.queue(ARBITER)[0] == []
    desk.answer(B, name, 0, note="", key=KEY.format(2))
    assert desk.queue(ARBITER)[0] == [name] and desk.progress().differ == 1
    assert sorted(map(str, desk.shown(ARBITER, name).others)) == ["0", "1"]
    assert desk.shown(A, name).others == ()
    desk.answer(ARBITER, name, 0, note="", key=KEY.format(3))
    assert desk.queue(ARBITER)[0] == [] and desk.progress().differ == 0
    campaign.take_in()
    assert campaign.state().answers == {name: 0}
    # The arbiter may look at it again.
    assert desk.shown(ARBITER, name).opinion is not None
    agreement = desk.agreement()
    assert agreement["questions"] == 1 and agreement["pairs"] == [{"experts": ["A", "B"], "questions": 1, "kappa": 0.0}]


def test_who_is_waited_for(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    names = desk.queue(A)[0]
    desk.answer(A, names[0], 1, note="", key=KEY.format(1))
    progress = desk.progress()
    assert progress.asked == len(campaign.state().groups[0])
    assert progress.waiting == {"A": len(names) - 1, "B": progress.asked - len(names)}
    assert progress.answered == {"A": 1, "B": 0}


def test_a_finished_campaign_asks_nobody(campaign: Campaign) -> None:
    campaign.add_answers(dict.fromkeys(campaign.state().groups[0], "yes"), source="test")
    while campaign.run(go_on=True).is_waiting:
        campaign.add_answers(dict.fromkeys(campaign.state().groups[-1], "yes"), source="test")
    assert campaign.state().finished and desk_of(campaign).queue(A)[0] == []


def test_pictures_are_those_that_the_campaign_was_created_with(tmp_path: Path) -> None:
    campaign = create(tmp_path / "c", oracle="files", seed=None)
    campaign.run()
    arrange(campaign, A)
    pool = small_pool()
    desk = LabellingDesk(campaign.folder, pool=pool)
    assert desk.shows == "picture"
    name = desk.queue(A)[0][0]
    record = campaign.identify([name])[name]
    assert record is not None
    shown = desk.shown(A, name)
    assert (shown.pictures, shown.texts) == (1, ())
    picture = np.asarray(Image.open(io.BytesIO(desk.picture(A, name, 0))))
    np.testing.assert_array_equal(picture, pool.records.read(pool.positions([record]))[0][0])
    for number in (-1, 1):
        with pytest.raises(NotForYou):
            desk.picture(A, name, number)
    values = pool.records.read(np.arange(len(pool))) ^ np.uint8(1)
    with pytest.raises(RecordsChanged):
        LabellingDesk(campaign.folder, pool=replace(pool, records=ArrayRecords(values))).picture(A, name, 0)


def test_someone_of_the_same_name_later_is_somebody_else(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    name = desk.queue(A)[0][0]
    desk.answer(A, name, 1, note="by the first A", key=KEY.format(1))
    Inbox(campaign.folder).add(arrangement_entry(remove="A"), person="", key="remove-00", above=0)
    again = Person(name="A", identity=9)
    arrange(campaign, again)
    assert desk.queue(again)[1] == [] and desk.shown(again, name).opinion is None
    assert desk.progress().answered["A"] == 0 and desk.progress().decided == 1


def test_an_inbox_that_is_put_back_shows_what_is_in_it(campaign: Campaign) -> None:
    desk = desk_of(campaign)
    before = Inbox(campaign.folder).path.read_bytes()
    names = desk.queue(A)[0]
    for number, name in enumerate(names[:2]):
        desk.answer(A, name, 1, note="", key=KEY.format(number))
    assert len(desk.queue(A)[0]) == len(names) - 2
    Inbox(campaign.folder).path.write_bytes(before)
    assert desk.queue(A)[0] == names
    desk.answer(A, names[0], 0, note="", key=KEY.format(7))
    assert [said.answer for said in desk.queue(A)[1]] == [0]


def test_the_arbiter_is_not_told_who_said_what(campaign: Campaign) -> None:
    arrange(campaign, see="everyone")
    desk = desk_of(campaign)
    first, second, *_ = desk.queue(A)[0]
    for number, (a, b, name) in enumerate(((0, 1, first), (1, 0, second))):
        desk.answer(A, name, a, note="", key=KEY.format(10 + number))
        desk.answer(B, name, b, note="", key=KEY.format(20 + number))
    assert desk.shown(ARBITER, first).others == desk.shown(ARBITER, second).others == (0, 1)


def test_what_they_saw_can_still_be_answered_after_somebody_joined(campaign: Campaign) -> None:
    """An expert without a connection goes on answering; somebody is added meanwhile, and half of it is theirs now."""
    desk = desk_of(campaign)
    of_a = desk.queue(A)[0]
    seen, unseen = of_a[::2], of_a[1::2]
    for name in seen:
        desk.shown(A, name)
    moved: list[str] = []
    for number in range(1000):
        if set(moved) & set(seen) and set(moved) & set(unseen):
            break
        arrange(campaign, Person(name=f"New {number}", identity=10 + number))
        moved = [name for name in of_a if name not in desk.queue(A)[0]]
    assert set(moved) & set(seen) and set(moved) & set(unseen)
    for name in moved:
        # They cannot look at it any more; what they say about what they have seen is kept.
        with pytest.raises(NotForYou):
            desk.shown(A, name)
        if name in seen:
            desk.answer(A, name, 1, note="", key=f"key-{name}-0000")
        else:
            with pytest.raises(NotForYou):
                desk.answer(A, name, 1, note="", key=f"key-{name}-0000")
        for stranger in (B, replace(A, identity=99), ARBITER):
            with pytest.raises(NotForYou):
                desk.answer(stranger, name, 0, note="", key=f"key-{name}-0001")
    campaign.take_in()
    assert campaign.state().answers == {name: 1 for name in moved if name in seen}
