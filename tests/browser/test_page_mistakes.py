"""What a doctor must never do by accident, and what must never get lost: in Chromium, against the real server."""

import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, needs_chromium
from command_line import dpal
from labelled_in_browser import READY, write_campaign
from served import Served, serving

from dpal.campaign.inbox import Inbox

pytestmark = [needs_chromium, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a folder with a campaign that waits for labels: a copy, because each kind is really made once."""
    originals: dict[str, Path] = {}

    def copied(folder: Path, kind: str = "images") -> Path:
        if kind not in originals:
            originals[kind] = tmp_path_factory.mktemp(kind)
            write_campaign(originals[kind], kind)
            for words in (["init", "c", "--config", "c.yaml"], ["run", "c"], ["experts", "add", "c", "Ann", "Ann Lee"],
                          ["experts", "arrange", "c", "--see", "everyone"]):  # fmt: skip
                assert dpal(*words, cwd=originals[kind]).returncode in (0, 3)
        shutil.copytree(originals[kind], folder, dirs_exist_ok=True)
        return folder / "c"

    return copied


@pytest.fixture
def served(made: Callable[..., Path], tmp_path: Path) -> Generator[Served]:
    with serving(made(tmp_path)) as running:
        yield running


def answers(folder: Path) -> list[dict[str, Any]]:
    return [dict(entry.body) for entry in Inbox(folder).after(0) if entry.body["kind"] == "answer"]


def opened(browser: Any, served: Served, who: str = "Ann", **options: Any) -> Any:
    page = browser.new_context(**options).new_page()
    page.goto(served.links[who])
    page.wait_for_selector(READY)
    return page


def saved(page: Any) -> None:
    page.wait_for_function("() => document.getElementById('connection').textContent.startsWith('All')")


def test_no_answer_is_taken_for_a_record_that_cannot_be_seen(served: Served, browser: Any, tmp_path: Path) -> None:
    page = opened(browser, served)
    # Nothing more arrives: only what was fetched ahead can be answered.
    page.route("**/api/picture*", lambda route: None)
    for _ in range(10):
        page.keyboard.press("1")
        page.wait_for_timeout(150)
    seen = page.inner_text("#position")
    assert page.locator("#record img").count() == 0 and page.locator("#choices button:enabled").count() == 0
    count = len(answers(tmp_path / "c"))
    page.keyboard.press("1")
    page.keyboard.press("s")
    page.wait_for_timeout(300)
    assert page.inner_text("#position") == seen and len(answers(tmp_path / "c")) == count < 8


def test_a_record_that_changed_can_be_left_out_and_not_labelled(served: Served, browser: Any, tmp_path: Path) -> None:
    page = browser.new_context().new_page()
    said = '{"error": "This record is not as it was when the campaign began."}'
    page.route("**/api/question*", lambda route: route.fulfill(status=409, content_type="application/json", body=said))
    page.goto(served.links["Ann"])
    page.wait_for_selector("#record :text('not as it was')")
    page.wait_for_selector("#skip:enabled")
    page.keyboard.press("1")
    page.wait_for_timeout(300)
    assert answers(tmp_path / "c") == [] and page.locator("#choices button:enabled").count() == 0
    page.keyboard.press("s")
    saved(page)
    assert [answer["answer"] for answer in answers(tmp_path / "c")] == ["skip"]


def test_a_double_tap_answers_one_record(served: Served, browser: Any, tmp_path: Path) -> None:
    page = opened(browser, served)
    page.wait_for_selector("#choices button:enabled")
    page.locator("#choices button").first.dblclick(delay=10)
    saved(page)
    page.wait_for_timeout(300)
    assert len(answers(tmp_path / "c")) == 1 and "Record 2 " in page.inner_text("#position")


@pytest.mark.parametrize(
    "instead",
    [
        {"status": 200, "content_type": "text/html", "body": "<h1>Welcome to the hotel</h1>"},
        {"status": 200, "content_type": "application/json", "body": "{}"},
        {"status": 403, "content_type": "text/html", "body": "blocked"},
        {"status": 404, "content_type": "application/json", "body": '{"error": "There is nothing here for you."}'},
        {"status": 502, "content_type": "text/html", "body": "bad gateway"},
    ],
)
def test_nobody_elses_word_makes_the_page_forget(
    served: Served, browser: Any, tmp_path: Path, instead: dict[str, Any]
) -> None:
    page = opened(browser, served)
    page.route("**/api/answer", lambda route: route.fulfill(**instead))
    page.keyboard.press("1")
    page.wait_for_function("() => document.getElementById('connection').textContent.startsWith('No connection')")
    assert answers(tmp_path / "c") == []
    page.unroute("**/api/answer")
    page.reload()
    saved(page)
    assert len(answers(tmp_path / "c")) == 1


def test_a_shared_tablet_sends_nobody_elses_answers(served: Served, browser: Any, tmp_path: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.links["Ann Lee"])
    page.wait_for_selector(READY)
    page.route("**/api/answer", lambda route: route.abort())
    page.keyboard.press("1")
    page.wait_for_timeout(300)
    page.close()
    other = context.new_page()
    other.goto(served.links["Ann"])
    other.wait_for_selector(READY)
    other.wait_for_timeout(500)
    assert answers(tmp_path / "c") == []
    back = context.new_page()
    back.goto(served.links["Ann Lee"])
    saved(back)
    (entry,) = [entry for entry in Inbox(tmp_path / "c").after(0) if entry.body["kind"] == "answer"]
    assert entry.person == "Ann Lee"


def test_an_ended_link_keeps_the_answers_for_the_new_one(served: Served, browser: Any, tmp_path: Path) -> None:
    page = opened(browser, served)
    assert dpal("experts", "renew", "c", "Ann", cwd=tmp_path).returncode == 0
    page.keyboard.press("2")
    page.wait_for_selector("#notice:not([hidden])")
    assert "kept here" in page.inner_text("#notice") and answers(tmp_path / "c") == []
    from dpal.campaign.labelling_desk import LabellingDesk

    desk = LabellingDesk(tmp_path / "c")
    person = desk.arrangement.person("Ann")
    assert person is not None
    # Pasted into the same tab.
    page.evaluate("token => { location.hash = `token=${token}`; }", desk.token(person))
    page.wait_for_selector(READY)
    saved(page)
    assert len(answers(tmp_path / "c")) == 1 and "token" not in page.url


def test_a_note_to_an_answered_record_is_kept(served: Served, browser: Any, tmp_path: Path) -> None:
    page = opened(browser, served)
    page.keyboard.press("1")
    page.wait_for_selector(READY)
    page.keyboard.press("b")
    page.wait_for_selector(READY)
    page.fill("#note", "left lung only")
    page.keyboard.press("Enter")
    page.keyboard.press("f")
    page.wait_for_selector(READY)
    # A note to one that is not answered yet is a draft, and no answer.
    page.fill("#note", "later")
    page.keyboard.press("Enter")
    page.keyboard.press("b")
    page.wait_for_selector(READY)
    assert page.input_value("#note") == "left lung only"
    page.keyboard.press("f")
    page.wait_for_selector(READY)
    assert page.input_value("#note") == "later"
    saved(page)
    assert [(one["answer"], one["note"]) for one in answers(tmp_path / "c")] == [(0, ""), (0, "left lung only")]


def test_the_operators_link_in_an_open_tab_reaches_no_log(served: Served, browser: Any) -> None:
    page = browser.new_context().new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(served.base)
    page.wait_for_selector("#message:not([hidden])")
    page.evaluate("token => { location.hash = `token=${token}`; }", served.token("operator"))
    page.wait_for_selector(".card")
    assert "token" not in page.url and not any(served.token("operator") in url for url in asked)


def test_several_labels_are_saved_by_enter_after_a_click(
    made: Callable[..., Path], browser: Any, tmp_path: Path
) -> None:
    with serving(made(tmp_path, "several-labels")) as served:
        page = opened(browser, served)
        for place in (0, 1):
            page.locator("#choices button:enabled").nth(place).click()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('position').textContent.startsWith('Record 2 ')")
        saved(page)
    assert [one["answer"] for one in answers(tmp_path / "c")] == [[1.0, 1.0, 0.0]]


def test_enter_that_is_held_down_saves_one_record(made: Callable[..., Path], browser: Any, tmp_path: Path) -> None:
    with serving(made(tmp_path, "several-labels")) as served:
        page = opened(browser, served)
        for _ in range(10):
            page.keyboard.down("Enter")
            page.wait_for_timeout(100)
        page.keyboard.up("Enter")
        saved(page)
        assert "Record 2 " in page.inner_text("#position") and len(answers(tmp_path / "c")) == 1
        # On what folds in and out it does that, and saves nothing.
        page.wait_for_selector(READY)
        page.set_viewport_size({"width": 390, "height": 844})
        page.focus("#view-tools summary")
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert "Record 2 " in page.inner_text("#position") and len(answers(tmp_path / "c")) == 1


def test_no_word_of_an_answer_is_broken(made: Callable[..., Path], browser: Any, tmp_path: Path) -> None:
    """Every button is as wide as its longest word, on a phone too: half a word is read wrongly."""
    with serving(made(tmp_path, "several-labels")) as served:
        page = opened(browser, served)
        task = page.evaluate("async () => (await fetch(location.pathname + 'api/task')).json()")
        task["classes"] = [
            "Pleural thickening",
            "Pneumothorax",
            "Cardiomegaly",
            *(f"Consolidation {n}" for n in "123456789"),
        ]
        page.route("**/api/task", lambda route: route.fulfill(json=task))
        for width in (320, 390, 820, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            page.reload()
            page.wait_for_selector(READY)
            broken = page.evaluate(
                """() => [...document.querySelectorAll("#choices button")].filter((button) => {
                  const range = document.createRange();
                  const text = button.firstChild;
                  return [...text.data.matchAll(/\\S+/g)].some((word) => {
                    range.setStart(text, word.index);
                    range.setEnd(text, word.index + word[0].length);
                    return range.getClientRects().length > 1;
                  });
                }).map((button) => button.textContent)"""
            )
            assert broken == [], width


def test_after_the_end_nothing_can_be_said(served: Served, browser: Any, tmp_path: Path) -> None:
    page = opened(browser, served)
    page.keyboard.press("1")
    saved(page)
    queue = page.evaluate("async () => (await fetch(location.pathname + 'api/queue')).json()")
    page.route("**/api/queue", lambda route: route.fulfill(json=queue | {"waiting": [], "finished": True}))
    page.reload()
    page.wait_for_selector("#message:not([hidden])")
    assert "finished" in page.inner_text("#message-title")
    assert not page.is_visible("#choices") and not page.is_visible("#undo")
    page.keyboard.press("u")
    page.wait_for_timeout(300)
    assert len(answers(tmp_path / "c")) == 1


def test_no_picture_of_a_unit_is_missed(made: Callable[..., Path], browser: Any, tmp_path: Path) -> None:
    """Each picture says which of how many it is, and a finger on one scrolls to the next, until it is zoomed."""
    with serving(made(tmp_path, "units")) as served:
        page = opened(browser, served, viewport={"width": 390, "height": 844}, has_touch=True)
        assert page.inner_text("#position").startswith("Patient 1 of ")
        which = "() => [...document.querySelectorAll('.stage')].map((one) => getComputedStyle(one, '::after').content)"
        assert page.evaluate(which) == ['"1 of 2"', '"2 of 2"']
        touch = "() => [...document.querySelectorAll('.stage')].map((one) => getComputedStyle(one).touchAction)"
        assert page.evaluate(touch) == ["pan-y", "pan-y"]
        page.keyboard.press("+")
        assert page.evaluate(touch) == ["none", "none"]
