"""The middle of a phase, in a file that only this phase can open, and that is gone once the phase is recorded."""

import logging
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from dying_campaigns import died_at
from small_campaigns import linear_campaign, linear_opened, linear_plan

from dpal.campaign import fault_points, sealed_snapshot
from dpal.campaign.campaign import Campaign
from dpal.campaign.files import draft_of
from dpal.campaign.layout import snapshot_name
from dpal.campaign.sealed_snapshot import SealedSnapshots
from dpal.campaign.step_randomness import SealedKeys

KEY = b"k" * 32


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot after every step."""
    monkeypatch.setattr(sealed_snapshot, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(sealed_snapshot, "LARGEST_SHARE", 1e9)


def opened(
    path: Path, *, key: bytes = KEY, belongs_to: bytes = b"this phase", said: list[str] | None = None
) -> SealedSnapshots:
    path.parent.mkdir(exist_ok=True)
    tell = (lambda words: None) if said is None else said.append
    return SealedSnapshots(path, key=key, belongs_to=belongs_to, name="phase 2", tell=tell)


@pytest.fixture
def path(tmp_path: Path, often: None) -> Path:
    """A snapshot."""
    path = tmp_path / "seals" / "7.snapshot"
    opened(path).offer(lambda: b"the middle of a phase" * 100)
    return path


def test_it_comes_back_as_it_was_and_is_for_the_owner_alone(path: Path) -> None:
    said: list[str] = []
    snapshots = opened(path, said=said)
    assert snapshots.newest() == b"the middle of a phase" * 100
    assert said == []
    snapshots.resumed_at(1140, 1200)
    assert said == ["resuming phase 2 at step 1,140 of 1,200"]
    # It is not kept in memory while the phase trains, and stays in the folder until there is a newer one.
    assert snapshots.newest() is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not draft_of(path).exists()
    assert b"middle" not in path.read_bytes()
    snapshots.offer(lambda: b"later")
    assert opened(path).newest() == b"later"


def test_the_time_of_earlier_processes_counts(path: Path) -> None:
    snapshots = opened(path)
    assert 0 < snapshots.seconds_before < 60
    snapshots.seconds_before = 1000.0
    snapshots.offer(lambda: b"later")
    assert 1000 < opened(path).seconds < 1060


def flipped(place: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "torn": lambda content: content[: len(content) // 2],
    "torn at the start": lambda content: content[:20],
    "torn at the end": lambda content: content[:-1],
    "too long": lambda content: content + b"\0",
    "zeros": lambda content: bytes(len(content)),
    "another format": flipped(0),
    "another nonce": flipped(20),
    "a bit of the time": flipped(30),
    "a bit of the content": flipped(500),
    "a bit of the tag": lambda content: flipped(len(content) - 1)(content),
    "not encrypted": lambda content: b"the middle of a phase" * 100,
}


def is_refused(path: Path, snapshots: Callable[[list[str]], SealedSnapshots]) -> None:
    said: list[str] = []
    with path.open("rb") as still_open:
        made = snapshots(said)
        assert made.newest() is None
        assert made.seconds_before == 0
        assert not any(still_open.read())
    assert not path.exists()
    assert len(said) == 1
    assert "phase 2 cannot be used" in said[0] and "The phase starts over, on the same charge" in said[0]


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_one_is_erased(path: Path, damage: str) -> None:
    path.write_bytes(DAMAGED[damage](path.read_bytes()))
    is_refused(path, lambda said: opened(path, said=said))


def test_one_of_another_key_or_of_anything_else_is_erased(path: Path) -> None:
    kept = path.read_bytes()
    is_refused(path, lambda said: opened(path, key=b"l" * 32, said=said))
    path.write_bytes(kept)
    is_refused(path, lambda said: opened(path, belongs_to=b"another phase", said=said))


def test_one_that_training_does_not_take_is_erased(path: Path) -> None:
    def refused_by_training(said: list[str]) -> SealedSnapshots:
        snapshots = opened(path, said=said)
        snapshots.resumed_at(None, 10)
        return snapshots

    is_refused(path, refused_by_training)


def test_short_phases_write_none(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    taken: list[str] = []
    original, fault_points.reached = fault_points.reached, taken.append
    try:
        assert campaign.run(go_on=True).stage == "finished"
    finally:
        fault_points.reached = original
    assert "train.step" in taken
    assert "train.snapshot-drafted" not in taken


def test_writing_takes_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(sealed_snapshot.time, "monotonic", lambda: clock[0])
    snapshots = opened(tmp_path / "seals" / "7.snapshot")
    times: list[float] = []

    def taken() -> bytes:
        times.append(clock[0])
        # A slow disk.
        clock[0] += 20.0
        return b"content"

    while clock[0] < 3000:
        snapshots.offer(taken)
        clock[0] += 1.0
    # After five minutes; then not before writing has taken a fiftieth of the time.
    assert times == [300.0, 1320.0, 2340.0]


def test_a_full_disk_does_not_end_the_phase(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshots, kept = opened(path), path.read_bytes()

    def full() -> bytes:
        raise OSError(28, "No space left on device")

    with caplog.at_level(logging.WARNING):
        snapshots.offer(full)
    assert "No space left on device" in caplog.text and "Training goes on" in caplog.text
    assert path.read_bytes() == kept


def in_the_middle(folder: Path, step: int = 3) -> Path:
    """A campaign whose first phase died after so many steps; its snapshot."""
    # Nothing is seeded.
    linear_campaign(folder, plan=linear_plan(epochs=3))
    died_at(folder, "train.step", hits=step)
    (charge,) = SealedKeys(folder).charges()
    return folder / snapshot_name(charge)


def steps_of(folder: Path) -> tuple[int, bytes]:
    """Run to the end; how many steps that takes, and the first phase's model. Later phases have keys of their own."""
    original, taken = fault_points.reached, list[str]()
    fault_points.reached = taken.append
    try:
        campaign = linear_opened(folder, oracle="simulated")
        assert campaign.run(go_on=True).stage == "finished"
    finally:
        fault_points.reached = original
    assert campaign.verify().holds
    return taken.count("train.step"), (folder / campaign.state().trained[0].file).read_bytes()


def test_a_campaign_goes_on_from_it_and_leaves_nothing_of_it(tmp_path: Path, often: None) -> None:
    snapshot = in_the_middle(tmp_path / "c")
    twin = Path(shutil.copytree(tmp_path / "c", tmp_path / "twin"))
    content = snapshot.read_bytes()
    (twin / snapshot.relative_to(tmp_path / "c")).unlink()
    (steps, model), (all_steps, expected) = steps_of(tmp_path / "c"), steps_of(twin)
    assert model == expected
    assert steps == all_steps - 3
    for path in (tmp_path / "c").rglob("*"):
        assert path.is_dir() or content[100:164] not in path.read_bytes(), path
    assert list((tmp_path / "c" / "seals").iterdir()) == []


def test_a_withdrawal_brings_a_new_key_and_ends_it(tmp_path: Path, often: None) -> None:
    folder = tmp_path / "c"
    snapshot = in_the_middle(folder)
    old, (charge,) = snapshot.read_bytes(), SealedKeys(folder).charges()
    key, withdrawn = SealedKeys(folder).read(charge), Campaign(folder).state().groups[0][0]
    with snapshot.open("rb") as still_open:
        Campaign(folder).withdraw([withdrawn], reason="consent")
        assert not any(still_open.read())
    assert not snapshot.exists()
    (renewed,) = SealedKeys(folder).charges()
    assert renewed != charge and SealedKeys(folder).read(renewed) != key
    # Even if someone puts it back, under the name of the new key.
    (folder / snapshot_name(renewed)).write_bytes(old)
    twin = Path(shutil.copytree(folder, tmp_path / "twin"))
    (twin / snapshot_name(renewed)).unlink()
    (steps, model), (all_steps, expected) = steps_of(folder), steps_of(twin)
    assert model == expected
    assert steps == all_steps


def test_giving_up_ends_it(tmp_path: Path, often: None) -> None:
    folder = tmp_path / "c"
    snapshot = in_the_middle(folder)
    draft_of(snapshot).write_bytes(b"half of one")
    with snapshot.open("rb") as still_open:
        Campaign(folder).give_up(reason="it never ends")
        assert not any(still_open.read())
    assert list(snapshot.parent.iterdir()) == []
    assert Campaign(folder).verify().holds


@pytest.mark.parametrize("what", ["a snapshot", "a draft"])
def test_one_that_nothing_needs_is_erased_by_whoever_comes_next(tmp_path: Path, what: str, often: None) -> None:
    folder = tmp_path / "c"
    snapshot = in_the_middle(folder)
    foreign = snapshot.with_name("2.snapshot")
    foreign = foreign if what == "a snapshot" else draft_of(foreign)
    shutil.copy(snapshot, foreign)
    with foreign.open("rb") as still_open:
        assert Campaign(folder).verify().holds
        assert not any(still_open.read())
    assert not foreign.exists()
    # The one that is needed stays.
    assert snapshot.exists()


def test_an_older_snapshot_of_the_same_phase_leads_to_the_same_model(tmp_path: Path, often: None) -> None:
    folder = tmp_path / "c"
    snapshot = in_the_middle(folder, step=2)
    older = snapshot.read_bytes()
    died_at(folder, "train.step", hits=3)
    assert snapshot.read_bytes() != older
    twin = Path(shutil.copytree(folder, tmp_path / "twin"))
    (twin / snapshot.relative_to(folder)).write_bytes(older)
    (steps, model), (more_steps, expected) = steps_of(folder), steps_of(twin)
    assert model == expected
    assert more_steps == steps + 3


def test_another_version_starts_over(tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    in_the_middle(folder)
    twin = Path(shutil.copytree(folder, tmp_path / "twin"))
    steps, model = steps_of(folder)
    monkeypatch.setattr(sealed_snapshot, "__version__", "99")
    all_steps, expected = steps_of(twin)
    assert model == expected
    assert all_steps == steps + 3
