"""What a Label Studio server may do that a real one seldom does: every answer is taken once, and none is lost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from small_campaigns import linear_campaign, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.intake import take_in
from dpal.campaign.label_studio_sync import LabelStudioSync
from dpal.campaign.layout import SYNC_LOCK
from dpal.campaign.writer import writing
from dpal.data import Pool
from dpal.errors import CampaignBusy
from dpal.labels.label_studio import NAME
from dpal.labels.label_studio_server import LabelStudio


@dataclass
class PretendedServer(LabelStudio):
    """A server in memory; what it does is chosen by each test."""

    url: str = "http://127.0.0.1:1"
    token: str = "t"  # noqa: S105
    found: list[dict[str, Any]] = field(default_factory=list)
    accounts: dict[int, str] = field(default_factory=lambda: {1: "ann@example.org", 2: "bob@example.org"})
    now: int = 0

    def projects(self) -> list[dict[str, Any]]:
        return [{"id": one["id"], "description": one["description"]} for one in self.found]

    def create_project(self, *, title: str, description: str, interface: str, instructions: str) -> None:
        number = 1 + max((one["id"] for one in self.found), default=0)
        self.found.append({"id": number, "description": description, "interface": interface, "tasks": []})

    def delete_project(self, project: int) -> None:
        self.found = [one for one in self.found if one["id"] != project]

    def tasks(self, project: int) -> list[dict[str, Any]]:
        (tasks,) = (one["tasks"] for one in self.found if one["id"] == project)
        return [{**task, "annotations": [dict(one) for one in task["annotations"]]} for task in tasks]

    def users(self) -> dict[int, str]:
        return dict(self.accounts)

    def import_tasks(self, project: int, tasks: Iterable[Mapping[str, Any]]) -> None:
        (known,) = (one["tasks"] for one in self.found if one["id"] == project)
        known += [{"id": 100 * project + number, **task, "annotations": []} for number, task in enumerate(tasks)]

    def annotate(self, name: str, choice: str, *, by: int | None = 1, project: int = 0, **more: Any) -> dict[str, Any]:
        self.now += 1
        (task,) = (task for task in self.found[project]["tasks"] if task["data"][NAME] == name)
        annotation = {"id": self.now, "completed_by": by} | more
        task["annotations"].append(annotation)
        return self.change(annotation, choice)

    def change(self, annotation: dict[str, Any], choice: str) -> dict[str, Any]:
        self.now += 1
        said = [{"from_name": "label", "value": {"choices": [choice]}}]
        annotation.update(result=said, updated_at=f"2026-01-01T00:00:{self.now:02d}Z")
        return annotation


def waiting(folder: Path, pool: Pool | None = None) -> tuple[Campaign, PretendedServer, LabelStudioSync]:
    pool = linear_pool() if pool is None else pool
    campaign = linear_campaign(folder, pool, oracle="files")
    campaign.run()
    server = PretendedServer()
    return campaign, server, LabelStudioSync(campaign.reader, server, lambda: pool)


def taken_in(campaign: Campaign) -> None:
    with writing(campaign.reader) as writer:
        take_in(writer, campaign.reader.contents)


def test_an_account_that_is_renamed_or_deleted_answers_once(tmp_path: Path) -> None:
    campaign, server, sync = waiting(tmp_path / "c")
    sync.sync()
    first, second = campaign.state().groups[0][:2]
    given = server.annotate(first, "yes")
    server.annotate(second, "no")
    assert sync.sync().answers == 2
    server.accounts = {1: "ann.smith@example.org"}
    assert sync.sync().answers == 0
    # A correction by the same account replaces its answer: two people who differ would leave the question open.
    server.change(given, "no")
    assert sync.sync().answers == 1
    for task in server.found[0]["tasks"]:
        for annotation in task["annotations"]:
            annotation["completed_by"] = None
    assert sync.sync().answers == 0
    taken_in(campaign)
    state = campaign.state()
    assert state.answers[first] == state.answers[second] == 0
    assert [len(state.opinions[name]) for name in (first, second)] == [1, 1]


def test_a_project_that_was_made_twice_loses_no_answer(tmp_path: Path) -> None:
    """A reply was lost, a second project was made and filled, and then the first one appeared."""
    campaign, server, sync = waiting(tmp_path / "c")
    sync.sync()
    (only,) = server.found
    only["id"] = 7
    first, second = campaign.state().groups[0][:2]
    server.annotate(first, "yes")
    server.found.append({**only, "id": 3, "tasks": []})
    assert sync.sync().tasks_added == 0
    server.annotate(second, "no")
    assert sync.sync().answers == 1
    taken_in(campaign)
    assert {first, second} <= set(campaign.state().answers)


def test_what_is_answered_is_not_asked_again_in_a_new_project(tmp_path: Path) -> None:
    campaign, server, sync = waiting(tmp_path / "c")
    first, *others = campaign.state().groups[0]
    campaign.add_answers({first: "yes"}, source="a file")
    assert sync.sync().tasks_added == len(others)
    server.annotate(others[0], "no")
    sync.sync()
    taken_in(campaign)
    server.found.clear()
    assert sync.sync().tasks_added == len(others) - 1
    assert {task["data"][NAME] for task in server.found[0]["tasks"]} == set(others[1:])


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    _, server, sync = waiting(tmp_path / "c")
    with FileLock(tmp_path / "c" / SYNC_LOCK), pytest.raises(CampaignBusy, match="fetching answers"):
        sync.sync()
    assert server.found == []
    assert sync.sync().tasks_added > 0


def test_a_project_is_removed_only_where_nothing_new_was_there(tmp_path: Path) -> None:
    campaign, server, sync = waiting(tmp_path / "c")
    sync.sync()
    given = [server.annotate(name, "yes") for name in campaign.state().groups[0]]
    sync.sync(remove=True)
    taken_in(campaign)
    # Somebody thinks again before it is removed.
    server.change(given[0], "no")
    assert sync.sync(remove=True).answers == 1 and len(server.found) == 1
    assert sync.sync(remove=True).answers == 0 and server.found == []


def test_a_skipped_task_is_skipped_where_a_class_is_called_skip(tmp_path: Path) -> None:
    campaign, server, sync = waiting(tmp_path / "c", replace(linear_pool(), classes=("go", "skip")))
    sync.sync()
    first, second = campaign.state().groups[0][:2]
    server.annotate(first, "go", was_cancelled=True)
    server.annotate(second, "skip")
    sync.sync()
    taken_in(campaign)
    assert campaign.state().answers == {first: "skip", second: 1}
