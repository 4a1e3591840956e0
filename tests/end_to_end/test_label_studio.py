"""Whole campaigns labelled in a real Label Studio server: skips, edits, restarts, lost answers, and every answer once.

`make test-label-studio` installs the server (a gigabyte, in an environment of its own) and runs this.
"""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from browser import chromium, needs_chromium
from command_line import dpal
from label_studio_server import PASSWORD, PROGRAM, TOKEN, USER, Server, label_studio, migrated
from labelled_in_browser import CLASSES, truth, write_campaign

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


def made(folder: Path, server: Server, kind: str, **changed: object) -> Path:
    """A campaign whose labels come from the server, and which waits for its first ones."""
    config = write_campaign(folder, kind)
    document = yaml.safe_load(config.read_text(encoding="utf-8"))
    (folder / "token").write_text(TOKEN + "\n")
    document["labels"] = {"source": "label-studio", "url": server.url, "token": str(folder / "token"), **changed}
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


@pytest.mark.parametrize("kind", ["images", "texts", "several-labels", "units"])
def test_a_whole_campaign_with_run_wait(tmp_path: Path, server: Server, kind: str) -> None:
    """Two queries; `dpal run --wait` sends, polls and goes on by itself."""
    if kind == "texts":
        pytest.importorskip("transformers")
    folder = made(tmp_path, server, kind)
    known = answers(folder, kind)
    command = [sys.executable, "-m", "dpal", "run", str(folder), "--wait"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + 180
        done: set[int] = set()
        while run.poll() is None:
            assert time.monotonic() < deadline
            for project in server.projects():
                for task in server.tasks(project["id"]):
                    if task["id"] not in done:
                        done.add(task["id"])
                        server.annotate(task, choices(known[task["data"]["dpal_name"]]))
            time.sleep(1)
    finally:
        run.kill()
        printed = run.communicate()[0]
    campaign = Campaign(folder)
    state = campaign.state()
    assert state.finished, printed
    assert campaign.verify().holds
    for group in state.groups:
        for record_id in group:
            answer = state.answers[record_id]
            assert (list(answer) if isinstance(answer, tuple) else answer) == truth(kind, record_id)
    opinions = require_each_answer_once(folder)
    assert len(opinions) == len(done) and {opinion["person"] for opinion in opinions} == {f"{USER} (Label Studio)"}
    # When it was said there, not when it came here.
    assert all(re.match(r"20\d\d-", opinion["at"]) for opinion in opinions)
    assert len(server.projects()) == 2
    require_no_token(folder, printed)
    report = dpal("report", "c", "--to", "r.html", cwd=tmp_path)
    assert report.returncode == 0 and TOKEN not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_skips_edits_and_a_restart_in_mid_round(tmp_path: Path, server: Server) -> None:
    folder = made(tmp_path, server, "images")
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
    folder = made(tmp_path, server, "images")
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
    folder = made(tmp_path, server, "images", remove_projects=True)
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
    folder = made(tmp_path, server, "images")
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
def test_someone_labels_on_its_own_page(tmp_path: Path, server: Server) -> None:
    folder = made(tmp_path, server, "images")
    synced(folder)
    (project,) = server.projects()
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{server.url}/user/login/")
        page.fill("input[name=email]", USER)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.goto(f"{server.url}/projects/{project['id']}/data?labeling=1")
        for _ in range(2):
            page.wait_for_function("() => [...document.images].some(one => one.naturalWidth === 10)", timeout=60_000)
            page.keyboard.press("1")
            page.wait_for_timeout(500)
            page.keyboard.press("Control+Enter")
            page.wait_for_timeout(2500)
    result = synced(folder)
    assert result["answers"] == 2 and result["problems"] == []
    assert sorted(map(str, Campaign(folder).state().answers.values())) == ["0", "0"]
