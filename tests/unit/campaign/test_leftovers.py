"""What a process that died leaves in the folder is removed by the next writer, and nothing that is still needed."""

from dataclasses import replace
from pathlib import Path

import pytest
from dying_campaigns import died_at
from small_campaigns import linear_campaign, linear_opened
from small_facts import charged_selection, charged_training, created, recorded, selected

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config, settings_hash
from dpal.campaign.facts import GivenUp
from dpal.campaign.files import draft_of
from dpal.campaign.layout import CONFIG, NEXT_CONFIG, WEIGHTS, checkpoint_name
from dpal.campaign.leftovers import has_leftovers, needed_keys, remove_leftovers
from dpal.campaign.state import State, fold
from dpal.campaign.step_randomness import SealedKeys

CONFIGURATION = checked_config({})
CHARGED = (created(settings=settings_hash(CONFIGURATION)), charged_selection(), selected(2, "a"), charged_training())
OPEN = fold(recorded(*CHARGED))
GIVEN_UP = fold(recorded(*CHARGED, GivenUp(charge=4, phase=0, reason="", settings=settings_hash(CONFIGURATION))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With keys for facts 2 and 4, the first weights, and a model and a draft of each of two phases."""
    (tmp_path / CONFIG).write_text(CONFIGURATION.to_yaml())
    for charge in (2, 4):
        SealedKeys(tmp_path).write(charge, b"k" * 32)
    (tmp_path / WEIGHTS).parent.mkdir()
    (tmp_path / WEIGHTS).touch()
    for phase in (0, 1):
        (tmp_path / checkpoint_name(phase)).touch()
        draft_of(tmp_path / checkpoint_name(phase)).touch()
    return tmp_path


def models(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / WEIGHTS).parent.iterdir())


def test_one_key_is_needed_while_a_step_is_open() -> None:
    assert needed_keys(OPEN) == [4]
    assert needed_keys(GIVEN_UP) == []


def test_the_key_of_an_open_step_stays_and_every_other_is_erased(folder: Path) -> None:
    before = models(folder)
    remove_leftovers(folder, OPEN)
    assert SealedKeys(folder).charges() == [4]
    assert SealedKeys(folder).read(4) == b"k" * 32
    assert models(folder) == before


def test_a_phase_that_was_given_up_leaves_no_model_and_others_keep_theirs(folder: Path) -> None:
    remove_leftovers(folder, GIVEN_UP)
    assert SealedKeys(folder).charges() == []
    assert models(folder) == [".phase-2.safetensors.draft", "initial.safetensors", "phase-2.safetensors"]


@pytest.mark.parametrize(("state", "sealed", "left"), [(OPEN, [4], False), (OPEN, [], True), (OPEN, [2, 4], True)])
def test_keys_that_are_not_the_needed_one_are_leftovers(
    folder: Path, state: State, sealed: list[int], left: bool
) -> None:
    assert has_leftovers(folder, state, sealed) is left


def test_a_model_of_a_phase_that_was_given_up_is_a_leftover(folder: Path) -> None:
    assert has_leftovers(folder, GIVEN_UP, [])
    (folder / checkpoint_name(0)).unlink()
    assert has_leftovers(folder, GIVEN_UP, [])
    draft_of(folder / checkpoint_name(0)).unlink()
    assert not has_leftovers(folder, GIVEN_UP, [])


def test_a_changed_configuration_is_settled_too(folder: Path) -> None:
    changed = checked_config({}, ["training.learning_rate=0.25"])
    (folder / NEXT_CONFIG).write_text(changed.to_yaml())
    remove_leftovers(folder, replace(GIVEN_UP, changed_settings=settings_hash(changed)))
    assert (folder / CONFIG).read_text() == changed.to_yaml()
    assert not (folder / NEXT_CONFIG).exists()


@pytest.mark.parametrize(
    ("point", "keys_left"),
    [("seal.written", 1), ("store.in-transaction", 1), ("select.charged", 1), ("seal.overwritten", 1)],
)
def test_what_a_dead_process_leaves_is_erased_and_the_campaign_holds(
    tmp_path: Path, point: str, keys_left: int
) -> None:
    folder = tmp_path / "c"
    linear_campaign(folder)
    died_at(folder, point)
    assert len(SealedKeys(folder).charges()) == keys_left
    # A committed charge always has its key, and verify clears away every other.
    open_charge = Campaign(folder).state().open_charge
    assert Campaign(folder).verify().holds
    assert SealedKeys(folder).charges() == ([] if open_charge is None else [open_charge[0]])
    assert linear_opened(folder).run().stage == "finished"
    assert SealedKeys(folder).charges() == []
    assert Campaign(folder).verify().holds


def test_half_a_model_that_safetensors_was_writing_is_removed(folder: Path) -> None:
    """It writes to a file with a name of its own next to the draft, and a process that is killed leaves it."""
    before = models(folder)
    (folder / WEIGHTS).with_name(".tmp0cbI7N").write_bytes(b"half a model")
    remove_leftovers(folder, OPEN)
    assert models(folder) == before
