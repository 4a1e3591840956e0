"""Two experts label whole campaigns in Chromium, by keyboard and by touch, while `dpal run` goes on elsewhere."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, needs_chromium
from command_line import dpal
from labelled_in_browser import CLASSES, KINDS, Expert, running, truth, write_campaign
from served import Served, serving, start, stop

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered
from dpal.campaign.inbox import Inbox

pytestmark = needs_chromium
MINUTES = 3


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


def made(folder: Path, kind: str, *arrange: str) -> Path:
    """A campaign with two experts and an arbiter, which has asked its first questions."""
    config = write_campaign(folder, kind)
    for words in (
        ["init", "c", "--config", config.name],
        ["experts", "add", "c", "Dr. Okafor", "Dr. Lindqvist"],
        ["experts", "add", "c", "Prof. Sato", "--role", "arbiter"],
        ["experts", "arrange", "c", *(arrange or ("--overlap", "0.5"))],
    ):
        done = dpal(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder / "c"


def names_to_truth(folder: Path, kind: str) -> dict[str, object]:
    """The true answer by the name that the page shows."""
    campaign = Campaign(folder)
    contents = campaign.contents()
    reader = campaign.reader
    if kind == "units":
        names = reader.unit_names(contents)
        return {names.name_of(unit): truth(kind, unit) for unit in contents.units or ()}
    names = reader.names(contents)
    return {names.name_of(record_id): truth(kind, record_id) for record_id in contents.ids}


def wait_for(condition, what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def says(page: Any, words: str) -> None:
    """Wait until the page says this about what is saved."""
    page.wait_for_function(
        "words => document.getElementById('connection').textContent.startsWith(words)", arg=words, timeout=30_000
    )


def asked(folder: Path) -> int:
    return len(Campaign(folder).state().groups)


def require_each_answer_once(folder: Path, experts: list[Expert]) -> None:
    """Every acknowledged answer is in the inbox and in the facts once, with its words, and there are no others."""
    entries = [entry for entry in Inbox(folder).after(0) if entry.body["kind"] == "answer"]
    keys = [key for expert in experts for key in expert.acknowledged]
    assert len(entries) == len(keys) == len(set(keys))
    facts = [entry.fact for entry in Campaign(folder).reader.recorded if isinstance(entry.fact, Answered)]
    opinions = [opinion for fact in facts for opinion in fact.opinions]
    assert [opinion["number"] for opinion in opinions] == [entry.number for entry in entries]
    acknowledged = sorted(json.dumps(body["answer"]) for expert in experts for body in expert.acknowledged.values())
    as_lists = [opinion["answer"] for opinion in opinions]
    plain = [[int(one) for one in answer] if isinstance(answer, list) else answer for answer in as_lists]
    assert sorted(json.dumps(answer) for answer in plain) == acknowledged


@pytest.mark.parametrize("kind", KINDS)
def test_two_experts_label_a_whole_campaign(tmp_path: Path, browser: Any, kind: str) -> None:
    if kind == "texts":
        pytest.importorskip("transformers")
    folder = made(tmp_path, kind)
    answers = names_to_truth(folder, kind)
    run = running(folder)
    try:
        wait_for(lambda: asked(folder) == 1, "the initial set is never asked for")
        with serving(folder) as served:
            keyboard = browser.new_context(viewport={"width": 1280, "height": 800})
            tablet = browser.new_context(viewport={"width": 820, "height": 1180}, has_touch=True)
            okafor = Expert(keyboard.new_page(), answers.__getitem__).opened(served.links["Dr. Okafor"])
            lindqvist = Expert(tablet.new_page(), answers.__getitem__, touch=True)
            lindqvist.opened(served.links["Dr. Lindqvist"])
            experts = [okafor, lindqvist]
            require_everything_is_shown(okafor, kind)
            deadline = time.monotonic() + 60 * MINUTES
            while not all(expert.is_finished() for expert in experts):
                assert time.monotonic() < deadline, (run.poll(), okafor.page.inner_text("main"))
                for expert in experts:
                    expert.answer_all()
                    # What comes next is looked up every now and then, and whenever the page is looked at again.
                    expert.page.evaluate("dispatchEvent(new Event('focus'))")
                    expert.page.wait_for_timeout(300)
            assert [expert.complaints for expert in experts] == [[], []]
            wait_for(lambda: run.poll() is not None, "dpal run does not end")
            for context in (keyboard, tablet):
                context.close()
            require_quiet(served)
        assert run.returncode == 0, run.stdout.read()
    finally:
        run.kill()
        run.wait(timeout=30)
        run.stdout.close()
    campaign = Campaign(folder)
    state = campaign.state()
    assert state.finished and campaign.verify().holds
    asked_for = [name for group in state.groups for name in group]
    expected = {name: truth(kind, name) for name in asked_for}
    assert {name: list(a) if isinstance(a, tuple) else a for name, a in state.answers.items()} == expected
    require_each_answer_once(folder, experts)
    # Both labelled, and about half of the questions were answered twice.
    assert all(expert.acknowledged for expert in experts)


def require_everything_is_shown(expert: Expert, kind: str) -> None:
    page = expert.page
    if kind == "texts":
        assert page.locator("#record .text").count() == 2
        assert "<b>fever</b> & cough" in page.inner_text("#record")
        assert page.locator("#record b").count() == 0
    else:
        assert page.locator("#record img").count() == (2 if kind == "units" else 1)
        page.wait_for_function("() => [...document.images].every(i => i.complete && i.naturalWidth > 0)")


def require_quiet(served: Served) -> None:
    """Nothing went wrong on the server's side."""
    assert not any("Traceback" in line or "Error" in line for line in served.log), served.log


def test_a_killed_server_a_lost_connection_and_a_closed_tab_lose_nothing(tmp_path: Path, browser: Any) -> None:
    folder = made(tmp_path, "images", "--see", "everyone")
    answers = names_to_truth(folder, "images")
    assert dpal("run", "c", cwd=tmp_path).returncode == 3
    served = start(folder)
    port = served.port
    try:
        context = browser.new_context()
        expert = Expert(context.new_page(), answers.__getitem__).opened(served.links["Dr. Okafor"])
        for _ in range(2):
            expert.give(answers[str(expert.name())])
        says(expert.page, "All")
        # The server dies. Two more answers are given; the pictures of the next records are there already.
        served.kill()
        for _ in range(2):
            expert.give(answers[str(expert.name())])
        says(expert.page, "No connection")
        assert "2 answers wait" in expert.page.inner_text("#connection")
        before = len(expert.acknowledged)
        assert before == 2
        served = start(folder, port=port)
        says(expert.page, "All")
        assert len(expert.acknowledged) == 4
        # The network is cut, one answer is given, and the tab is closed.
        context.set_offline(True)
        expert.give(answers[str(expert.name())])
        expert.page.wait_for_timeout(300)
        assert len(expert.acknowledged) == 4
        expert.page.close()
        context.set_offline(False)
        again = Expert(context.new_page(), answers.__getitem__)
        # No token is needed any more, and the answer is sent as soon as the page is open.
        again.opened(served.base + served.path("Dr. Okafor"))
        says(again.page, "All")
        assert len(again.acknowledged) == 1
        again.answer_all()
        says(again.page, "All")
        require_quiet(served)
        context.close()
    finally:
        stop(served)
    assert Campaign(folder).take_in() > 0
    require_each_answer_once(folder, [expert, again])
    opinions = Campaign(folder).state().opinions
    assert {name: [one.answer for one in given.values()] for name, given in opinions.items()} == {
        name: [truth("images", name)] for name in Campaign(folder).state().groups[0]
    }


def test_undo_skip_cannot_tell_notes_back_and_an_arbiter(tmp_path: Path, browser: Any) -> None:
    folder = made(tmp_path, "images", "--see", "everyone")
    answers = names_to_truth(folder, "images")
    assert dpal("run", "c", cwd=tmp_path).returncode == 3
    with serving(folder) as served:
        context = browser.new_context()
        first = Expert(context.new_page(), answers.__getitem__).opened(served.links["Dr. Okafor"])
        page = first.page
        # A wrong key: undo goes back to that record, and its answer is open again.
        wrong = str(first.name())
        first.give(1 - int(str(answers[wrong])))
        page.keyboard.press("u")
        page.wait_for_function("name => document.getElementById('name').textContent === name", arg=wrong)
        first.give(answers[wrong])
        skipped = str(first.name())
        first.give("skip")
        unclear = str(first.name())
        page.keyboard.press("n")
        page.keyboard.type("<script>alert(1)</script> blurred, see 7 s u")
        page.keyboard.press("Enter")
        first.give("cannot-tell")
        # Back shows what was said, and another answer corrects it.
        page.keyboard.press("b")
        page.wait_for_function("name => document.getElementById('name').textContent === name", arg=unclear)
        assert page.input_value("#note").startswith("<script>alert(1)</script> blurred")
        assert page.locator("#cannot-tell.said").count() == 1
        page.keyboard.press("f")
        first.answer_all()
        second = Expert(browser.new_context(has_touch=True).new_page(), answers.__getitem__, touch=True)
        second.opened(served.links["Dr. Lindqvist"])
        differs = ""
        while (name := second.name()) is not None:
            given = int(str(answers[name]))
            if name not in (skipped, unclear) and not differs:
                differs, given = name, 1 - given
            second.give(given)
        arbiter = Expert(browser.new_context().new_page(), answers.__getitem__).opened(served.links["Prof. Sato"])
        assert arbiter.name() == differs
        arbiter.page.click("#others summary")
        assert sorted(arbiter.page.locator("#others-list li").all_inner_texts()) == sorted(CLASSES)
        arbiter.give(answers[differs])
        assert "Nothing to decide" in arbiter.page.inner_text("#message-title")
        for expert in (first, second, arbiter):
            says(expert.page, "All")
            assert expert.complaints == []
            expert.page.context.close()
        require_quiet(served)
    campaign = Campaign(folder)
    campaign.take_in()
    state = campaign.state()
    by_name = campaign.identify([wrong, skipped, unclear, differs])
    # Whoever skips abstains; where one expert names a label, it counts.
    assert all(state.answers[str(by_name[name])] == answers[name] for name in by_name)
    notes = {opinion.person: opinion.note for opinion in state.opinions[str(by_name[unclear])].values()}
    assert notes["Dr. Okafor"].startswith("<script>")
    said = [
        opinion["answer"]
        for entry in campaign.reader.recorded
        if isinstance(entry.fact, Answered)
        for opinion in entry.fact.opinions
        if opinion["question"] == by_name[wrong] and opinion["person"] == "Dr. Okafor"
    ]
    assert said == [1 - int(str(answers[wrong])), None, answers[wrong]]
    require_each_answer_once(folder, [first, second, arbiter])
    assert campaign.verify().holds
