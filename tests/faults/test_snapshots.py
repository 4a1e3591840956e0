"""SIGKILL in the middle of a phase: it goes on from its snapshot, and ends with the bits of an undisturbed run."""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from killed_programs import PATH, state_of, weights
from snapshot_campaigns import LOG, VARIANTS, create
from warm_processes import COMMAND_LINE, python

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.files import draft_of
from dpal.campaign.layout import snapshot_name
from dpal.campaign.step_randomness import SealedKeys

POINTS = [point for point in fault_points.POINTS if point.startswith("train.snapshot-")]


class Run:
    """A `dpal run` that is killed or ends by itself: its words, and how many steps it took."""

    def __init__(self, folder: Path, *, kill_at: str | None = None, processes: int = 1) -> None:
        log = folder.with_name(f"{folder.name}.steps")
        log.write_text("")
        # As many threads for one process as for each of several.
        environment = os.environ | {"PYTHONPATH": PATH, LOG: str(log), "OMP_NUM_THREADS": "1"}
        done = python(
            COMMAND_LINE,
            "run",
            folder,
            "--processes",
            processes,
            environment=environment | ({} if kill_at is None else {fault_points.VARIABLE: kill_at}),
        )
        self.words = done.stdout + done.stderr
        assert done.returncode == (0 if kill_at is None else -signal.SIGKILL), self.words
        assert "Traceback" not in self.words
        self.steps = len(log.read_text().splitlines())


def model_of(folder: Path) -> dict[str, bytes]:
    (trained,) = state_of(folder).trained
    return weights(folder / trained.file)


def snapshot_of(folder: Path) -> Path:
    (charge,) = SealedKeys(folder).charges()
    return folder / snapshot_name(charge)


def copied(folder: Path, tmp_path: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, tmp_path / name))


class Phase:
    """A campaign whose one phase is charged, and what an undisturbed run makes of it."""

    def __init__(self, place: Path, variant: str) -> None:
        self.charged = place / "charged"
        create(self.charged, variant)
        Run(self.charged, kill_at="train.charged")
        whole = copied(self.charged, place, "whole")
        self.steps = Run(whole).steps
        self.model = model_of(whole)
        (charge,) = [fact for _, fact in state_of(whole).charges if isinstance(fact, ChargedTraining)]
        assert self.steps == charge.steps > 12


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Phase]:
    return {name: Phase(tmp_path_factory.mktemp("phase"), name) for name in VARIANTS}


@pytest.mark.parametrize(
    ("variant", "point", "kept"),
    [
        ("sealed", "train.step:1", 1),
        # A draft is not a snapshot yet.
        ("sealed", "train.snapshot-drafted:8", 7),
        ("seeded", "train.snapshot-written:5", 5),
        # After the last step, when the model's file is about to be recorded.
        ("sealed", "train.checkpoint-drafted", -1),
    ],
)
def test_a_killed_phase_goes_on_where_it_was(
    phases: dict[str, Phase], tmp_path: Path, variant: str, point: str, kept: int
) -> None:
    phase = phases[variant]
    folder, kept = copied(phase.charged, tmp_path, "campaign"), kept % phase.steps
    Run(folder, kill_at=point)
    snapshot = snapshot_of(folder)
    assert snapshot.is_file()
    assert draft_of(snapshot).is_file() == (point == "train.snapshot-drafted:8")
    content = snapshot.read_bytes()
    assert Campaign(folder).status().stage == "interrupted"
    again = Run(folder)
    assert f"resuming phase 1 at step {kept} of {phase.steps}" in again.words
    assert again.steps == phase.steps - kept
    assert model_of(folder) == phase.model
    # It is gone: its file, the draft, and every part of its bytes.
    assert list((folder / "seals").iterdir()) == []
    for path in folder.rglob("*"):
        assert path.is_dir() or content[100:164] not in path.read_bytes(), path
    assert Campaign(folder).verify().holds


def test_killed_again_and_again_no_step_is_taken_twice(phases: dict[str, Phase], tmp_path: Path) -> None:
    phase, chance = phases["sealed"], random.Random(25)  # noqa: S311 (where to kill is no secret)
    folder, taken = copied(phase.charged, tmp_path, "campaign"), 0
    while (more := chance.randint(3, 6)) < phase.steps - taken:
        taken += Run(folder, kill_at=f"train.step:{more}").steps + 1
    last = Run(folder)
    # A killed process does not write down the step after which it died.
    assert taken + last.steps == phase.steps
    assert model_of(folder) == phase.model
    assert state_of(folder).resumed >= 3


@pytest.fixture(scope="module")
def dead(phases: dict[str, Phase], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of two processes died after step 7."""
    folder = copied(phases["sealed"].charged, tmp_path_factory.mktemp("dead"), "campaign")
    Run(folder, kill_at="train.step:7", processes=2)
    return folder


@pytest.mark.parametrize("damage", ["torn", "flipped"])
def test_a_snapshot_that_is_not_whole_costs_time_and_nothing_else(
    phases: dict[str, Phase], dead: Path, tmp_path: Path, damage: str
) -> None:
    phase, folder = phases["sealed"], copied(dead, tmp_path, "campaign")
    snapshot = snapshot_of(folder)
    content = snapshot.read_bytes()
    torn, flipped = content[: len(content) // 2], content[:999] + bytes([content[999] ^ 4]) + content[1000:]
    snapshot.write_bytes(torn if damage == "torn" else flipped)
    again = Run(folder)
    assert "the snapshot of phase 1 cannot be used" in again.words
    assert again.steps == phase.steps
    assert model_of(folder) == phase.model


def test_a_withdrawal_in_between_trains_from_the_start_with_a_new_key(phases: dict[str, Phase], tmp_path: Path) -> None:
    """With a seed the new key is known, so what comes of it can be compared with a phase that had no snapshot."""
    phase = phases["seeded"]
    folder, twin = copied(phase.charged, tmp_path, "campaign"), copied(phase.charged, tmp_path, "twin")
    Run(folder, kill_at="train.step:9")
    snapshot = snapshot_of(folder)
    assert snapshot.is_file()
    record = state_of(folder).groups[0][0]
    for each in (folder, twin):
        Campaign(each).withdraw([record], reason="consent")
    assert not snapshot.exists()
    again = Run(folder)
    assert "resuming phase" not in again.words
    assert again.steps == Run(twin).steps == phase.steps
    assert model_of(folder) == model_of(twin) != phase.model


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_any_number_of_processes_goes_on(phases: dict[str, Phase], dead: Path, tmp_path: Path, processes: int) -> None:
    phase, folder = phases["sealed"], copied(dead, tmp_path, "campaign")
    again = Run(folder, processes=processes)
    assert f"resuming phase 1 at step 7 of {phase.steps}" in again.words
    assert again.steps == phase.steps - 7
    assert model_of(folder) == phase.model
    assert state_of(folder).trained[0].processes == processes


def test_every_point_of_snapshots_is_killed_at() -> None:
    assert set(POINTS) == {"train.snapshot-drafted", "train.snapshot-written"}
