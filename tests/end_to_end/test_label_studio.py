"""Whole campaigns labelled in a real Label Studio server: skips, edits, restarts, lost answers, and every answer once.

`make test-label-studio` installs the server (a gigabyte, in an environment of its own) and runs this.
"""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from browser import chromium, needs_chromium
from command_line import dpal
from label_studio_server import PASSWORD, PROGRAM, TOKEN, USER, Server, label_studio, migrated
from labelled_in_browser import CLASSES, truth, write_campaign
from losing_proxy import losing_proxy

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered
from dpal.campaign.inbox import Inbox

pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="needs Label Studio (make test-label-studio)")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return migrated(tmp_path_factory.mktemp("label-studio") / "template")


@pytest.fixture
def server(tmp_path: Path, template: Path) -> Generator[Server]:
    with label_studio(tmp_path / "label-studio", template) as running:
        yield running


def made(folder: Path, url: str, kind: str, *, plan: Mapping[str, object] | None = None, **changed: object) -> Path:
    """A campaign whose labels come from the server, and which waits for its first ones."""
    config = write_campaign(folder, kind)
    document = yaml.safe_load(config.read_text(encoding="utf-8"))
    (folder / "token").write_text(TOKEN + "\n")
    document["labels"] = {"source": "label-studio", "url": url, "token": str(folder / "token"), **changed}
    document["plan"] |= plan or {}
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert dpal("init", "c", "--config", config.name, cwd=folder).returncode == 0
    assert dpal("run", "c", cwd=folder).returncode == 3
    return folder / "c"


def synced(folder: Path) -> dict[str, Any]:
    done = dpal("labels", "sync", "c", "--json", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["internal"]


def answers(folder: Path, kind: str) -> dict[str, object]:
    """The true answers by the name that tasks carry."""
    campaign = Campaign(folder)
    contents = campaign.contents()
    names = campaign.reader.unit_names(contents) if kind == "units" else campaign.reader.names(contents)
    ids = dict.fromkeys(contents.units or ()) if kind == "units" else contents.ids
    return {names.name_of(one): truth(kind, one) for one in ids}


def choices(answer: object) -> list[str]:
    from labelled_in_browser import FINDINGS

    if isinstance(answer, list):
        return [name for name, on in zip(FINDINGS, answer, strict=True) if on]
    return [CLASSES[int(str(answer))]]


def require_each_answer_once(folder: Path) -> list[dict[str, Any]]:
    """In the facts, in the order of the inbox, and nothing twice; returns what was said."""
    entries = [entry for entry in Inbox(folder).after(0) if entry.body["kind"] == "answer"]
    facts = [entry.fact for entry in Campaign(folder).reader.recorded if isinstance(entry.fact, Answered)]
    opinions = [dict(opinion) for fact in facts for opinion in fact.opinions]
    assert [opinion["number"] for opinion in opinions] == [entry.number for entry in entries]
    return opinions


def require_no_token(folder: Path, *texts: str) -> None:
    """Not in any file of the campaign, and not in what was printed."""
    for file in folder.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes(), file
    assert not any(TOKEN in text for text in texts)


def run_and_label(folder: Path, server: Server, label: Callable[[int, dict[str, Any]], None]) -> tuple[int, str]:
    """`dpal run --wait`, while people label each task once, by round; how many tasks there were, and what it said."""
    command = [sys.executable, "-m", "dpal", "run", str(folder), "--wait"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    done: set[int] = set()
    try:
        deadline = time.monotonic() + 300
        while run.poll() is None:
            assert time.monotonic() < deadline
            for number, project in enumerate(server.projects()):
                for task in server.tasks(project["id"]):
                    if task["id"] not in done:
                        done.add(task["id"])
                        label(number, task)
            time.sleep(1)
    finally:
        run.kill()
        printed = run.communicate()[0]
    return len(done), printed


def test_two_queries_with_all_that_goes_wrong(tmp_path: Path, server: Server) -> None:
    """Skips, edits of an earlier round, lost replies, and a server that is killed in mid-round, in one campaign."""
    with losing_proxy(server.url) as (url, lost):
        folder = made(tmp_path, url, "images", plan={"query_sizes": [6, 4]})
        known, rounds = answers(folder, "images"), list[list[str]]()
        wrong: list[dict[str, Any]] = []

        def label(number: int, task: dict[str, Any]) -> None:
            name = str(task["data"]["dpal_name"])
            rounds.extend([] for _ in range(number + 1 - len(rounds)))
            rounds[number].append(name)
            right = int(str(known[name]))
            match number, len(rounds[number]):
                case 0, 1:
                    wrong.append(server.annotate(task, [CLASSES[1 - right]]))
                    return
                case 0, 2:
                    server.annotate(task, [], skip=True)
                    return
                case 1, 1:
                    # The first round is over, and its first answer is changed.
                    server.change(wrong[0], choices(known[rounds[0][0]]))
                case 1, 4:
                    server.stop(signal.SIGKILL)
                    server.start()
                case _:
                    pass
            server.annotate(task, [CLASSES[right]])

        count, printed = run_and_label(folder, server, label)
    campaign = Campaign(folder)
    state = campaign.state()
    assert state.finished, printed
    assert [len(names) for names in rounds] == [8, 6, 4] and len(server.projects()) == 3
    by_name = campaign.identify([name for names in rounds for name in names])
    given = {name: state.answers[str(record)] for name, record in by_name.items()}
    assert given == {**{name: known[name] for name in by_name}, rounds[0][1]: "skip"}
    # Every answer once, and the one that was changed a second time.
    assert len(require_each_answer_once(folder)) == count + 1
    # The server did what it was asked, and nobody heard of it: each project, and the tasks of each.
    assert lost[0] == "POST /api/projects" and len(lost) == 4
    assert "did not answer POST" in printed
    assert campaign.verify().holds
    require_no_token(folder, printed)


@pytest.mark.parametrize("kind", ["texts", "several-labels", "units"])
def test_a_whole_campaign_with_run_wait(tmp_path: Path, server: Server, kind: str) -> None:
    """`dpal run --wait` sends, polls and goes on by itself: two queries with texts, one with the others."""
    if kind == "texts":
        pytest.importorskip("transformers")
    queries = [6, 4] if kind == "texts" else [6]
    folder = made(tmp_path, server.url, kind, plan={"query_sizes": queries})
    known = answers(folder, kind)

    def label(number: int, task: dict[str, Any]) -> None:
        server.annotate(task, choices(known[task["data"]["dpal_name"]]))

    count, printed = run_and_label(folder, server, label)
    campaign = Campaign(folder)
    state = campaign.state()
    assert state.finished, printed
    assert campaign.verify().holds
    for group in state.groups:
        for record_id in group:
            answer = state.answers[record_id]
            assert (list(answer) if isinstance(answer, tuple) else answer) == truth(kind, record_id)
    opinions = require_each_answer_once(folder)
    assert len(opinions) == count and {opinion["person"] for opinion in opinions} == {f"{USER} (Label Studio)"}
    # When it was said there, not when it came here.
    assert all(re.match(r"20\d\d-", opinion["at"]) for opinion in opinions)
    assert len(server.projects()) == 1 + len(queries)
    require_no_token(folder, printed)
    report = dpal("report", "c", "--to", "r.html", cwd=tmp_path)
    assert report.returncode == 0 and TOKEN not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_skips_edits_and_a_restart_in_mid_round(tmp_path: Path, server: Server) -> None:
    folder = made(tmp_path, server.url, "images")
    known = answers(folder, "images")
    assert synced(folder)["tasks_added"] == 8
    # Again: nothing twice.
    assert synced(folder) | {"waiting_for_labels": 0} == {
        "tasks_added": 0, "answers": 0, "problems": [], "waiting_for_labels": 0,
    }  # fmt: skip
    (project,) = server.projects()
    tasks = server.tasks(project["id"])
    first, second, third, *rest = tasks
    wrong = server.annotate(first, [CLASSES[1 - int(str(known[first["data"]["dpal_name"]]))]])
    server.annotate(second, [], skip=True)
    server.annotate(third, ["cannot tell"])
    assert synced(folder)["answers"] == 3
    # The server dies and comes back; the campaign says so, and goes on.
    server.stop(signal.SIGKILL)
    refused = dpal("labels", "sync", "c", cwd=tmp_path)
    assert refused.returncode == 2 and "Is it running?" in refused.stderr and "Traceback" not in refused.stderr
    server.start()
    server.change(wrong, choices(known[first["data"]["dpal_name"]]))
    for task in rest:
        server.annotate(task, choices(known[task["data"]["dpal_name"]]))
    result = synced(folder)
    assert result["answers"] == 1 + len(rest) and result["waiting_for_labels"] == 0
    campaign = Campaign(folder)
    by_name = campaign.identify([task["data"]["dpal_name"] for task in tasks])
    state = campaign.state()
    given = {name: state.answers[str(record)] for name, record in by_name.items()}
    assert given[second["data"]["dpal_name"]] == "skip" and given[third["data"]["dpal_name"]] == "cannot-tell"
    for task in (first, *rest):
        assert given[task["data"]["dpal_name"]] == known[task["data"]["dpal_name"]]
    assert len(require_each_answer_once(folder)) == len(tasks) + 1
    assert campaign.verify().holds


def test_answers_to_requests_that_get_lost(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request that makes something is done by the server, and its answer never arrives."""
    folder = made(tmp_path, server.url, "images")
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", TOKEN)
    request, lost = httpx.request, []

    def losing(method: str, url: str, **options: Any) -> httpx.Response:
        response = request(method, url, **options)
        if method == "POST" and url not in lost:
            lost.append(url)
            raise httpx.ReadTimeout("lost")
        return response

    monkeypatch.setattr(httpx, "request", losing)
    campaign = Campaign(folder)
    for _ in range(2):
        with pytest.raises(Exception, match="did not answer POST"):
            campaign.sync_labels()
    assert campaign.sync_labels().tasks_added == 0 and len(lost) == 2
    (project,) = server.projects()
    tasks = server.tasks(project["id"])
    assert len(tasks) == len({task["data"]["dpal_name"] for task in tasks}) == 8


def test_projects_are_removed_if_the_operator_wants(tmp_path: Path, server: Server) -> None:
    folder = made(tmp_path, server.url, "images", remove_projects=True)
    known = answers(folder, "images")
    synced(folder)
    for task in server.tasks(server.projects()[0]["id"]):
        server.annotate(task, choices(known[task["data"]["dpal_name"]]))
    assert synced(folder)["answers"] == 8
    synced(folder)
    assert server.projects() == []
    assert dpal("run", "c", cwd=tmp_path).returncode == 3
    assert synced(folder)["tasks_added"] == 6


def test_mistakes_are_said_and_tokens_are_not(tmp_path: Path, server: Server) -> None:
    folder = made(tmp_path, server.url, "images")
    (tmp_path / "token").write_text("f" * 40)
    refused = dpal("labels", "sync", "c", cwd=tmp_path)
    assert refused.returncode == 2 and "refuses the token" in refused.stderr and "ffff" not in refused.stderr
    (tmp_path / "token").unlink()
    refused = dpal("labels", "sync", "c", cwd=tmp_path)
    assert refused.returncode == 2 and "labels.token" in refused.stderr
    config = tmp_path / "c/campaign.yaml"
    # A token in the place of its place is not repeated.
    config.write_text(config.read_text().replace(str(tmp_path / "token"), TOKEN))
    refused = dpal("labels", "sync", "c", cwd=tmp_path)
    assert refused.returncode == 2 and TOKEN not in refused.stderr + refused.stdout
    assert folder.is_dir()


@needs_chromium
def test_a_whole_campaign_on_its_own_page(tmp_path: Path, server: Server) -> None:
    """Two queries, each record shown, answered by key or skipped, in Chromium; what the server keeps is what counts."""
    folder = made(tmp_path, server.url, "images", plan={"initial_size": 4, "query_sizes": [2, 2]})
    said = 0
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{server.url}/user/login/")
        page.fill("input[name=email]", USER)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        for asked in (4, 2, 2):
            assert synced(folder)["tasks_added"] == asked
            project = server.projects()[-1]["id"]
            page.goto(f"{server.url}/projects/{project}/data?labeling=1")
            for number in range(asked):
                page.wait_for_function(
                    "() => [...document.images].some(one => one.naturalWidth === 10)", timeout=60_000
                )
                if number == 3:
                    page.keyboard.press("Control+Space")
                else:
                    page.keyboard.press(str(1 + number % 2))
                    page.wait_for_timeout(500)
                    page.keyboard.press("Control+Enter")
                deadline = time.monotonic() + 30
                while sum(bool(task["annotations"]) for task in server.tasks(project)) <= number:
                    assert time.monotonic() < deadline
                    page.wait_for_timeout(200)
                page.wait_for_timeout(1500)
            result = synced(folder)
            said += asked
            assert (result["answers"], result["problems"], result["waiting_for_labels"]) == (asked, [], 0)
            assert dpal("run", "c", cwd=tmp_path).returncode == (0 if said == 8 else 3)
    campaign = Campaign(folder)
    kept = {
        task["data"]["dpal_name"]: "skip"
        if (annotation := task["annotations"][0])["was_cancelled"]
        else CLASSES.index(annotation["result"][0]["value"]["choices"][0])
        for project in server.projects()
        for task in server.tasks(project["id"])
    }
    by_name = campaign.identify(list(kept))
    assert {name: campaign.state().answers[str(record)] for name, record in by_name.items()} == kept
    assert sorted(map(str, kept.values())) == ["0"] * 4 + ["1"] * 3 + ["skip"]
    assert len(require_each_answer_once(folder)) == said == 8
    assert campaign.state().finished and campaign.verify().holds
