"""A changed configuration counts once its hash is recorded, and not before, whenever the process dies."""

from pathlib import Path

import pytest

from dpal.campaign.changed_config import current_config, require_recorded, settle, write_next
from dpal.campaign.config import checked_config, read_config, settings_hash
from dpal.campaign.layout import CONFIG, NEXT_CONFIG
from dpal.errors import DamagedCampaign

OLD = checked_config({}, ["training.learning_rate=0.5"])
NEW = checked_config({}, ["training.learning_rate=0.25"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the old configuration in place and the new one waiting."""
    (tmp_path / CONFIG).write_text(OLD.to_yaml())
    write_next(tmp_path, NEW)
    return tmp_path


def test_the_recorded_hash_decides_which_file_counts(folder: Path) -> None:
    assert current_config(folder, settings_hash(OLD)) == OLD
    assert current_config(folder, settings_hash(NEW)) == NEW


def test_a_change_that_was_recorded_is_put_in_place(folder: Path) -> None:
    settle(folder, settings_hash(NEW))
    assert read_config(folder / CONFIG) == NEW
    assert not (folder / NEXT_CONFIG).exists()
    # Again, as after a second crash: nothing changes.
    settle(folder, settings_hash(NEW))
    assert read_config(folder / CONFIG) == NEW


def test_a_change_that_was_not_recorded_is_removed(folder: Path) -> None:
    settle(folder, settings_hash(OLD))
    assert read_config(folder / CONFIG) == OLD
    assert not (folder / NEXT_CONFIG).exists()


def test_files_that_have_no_recorded_hash_are_refused_and_kept(folder: Path) -> None:
    unknown = settings_hash(checked_config({}, ["training.learning_rate=0.125"]))
    config = current_config(folder, unknown)
    assert config == OLD
    with pytest.raises(DamagedCampaign, match=r"campaign\.yaml differs from the configuration .*Nothing was changed"):
        require_recorded(folder, config, unknown)
    settle(folder, unknown)
    assert read_config(folder / CONFIG) == OLD


def test_data_may_move(folder: Path) -> None:
    moved = checked_config({"data": {"source": "table", "options": {"file": "/elsewhere/t.csv"}}})
    there = checked_config({"data": {"source": "table", "options": {"file": "/here/t.csv"}}})
    require_recorded(folder, moved, settings_hash(there))
