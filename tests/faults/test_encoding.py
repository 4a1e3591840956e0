"""SIGKILL while records are encoded, then again: what was computed is kept, and the campaign is as if undisturbed."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from killed_programs import PROGRAM, program, released, state_of
from tiny_encoder import TinyEncoder, encoded_campaign, options

from dpal.campaign.campaign import Campaign
from dpal.models.encoders import as_encoder

SCRIPT = PROGRAM.with_name("tiny_encoder.py")
# Of 150 records in chunks of 64, and then 60 held-out ones.
CHUNKS = (64, 64, 22, 60)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "campaign"
    encoded_campaign(folder).run()
    return folder


def calls_to_open(folder: Path) -> int:
    """How many records an opening encodes."""
    module, tried = TinyEncoder(), TinyEncoder()
    as_encoder(tried)
    Campaign.open(folder, **options(module))
    return module.calls - tried.calls


@pytest.mark.parametrize(
    ("point", "number"),
    [("encode.rows-written", 1), ("encode.rows-written", 3), ("encode.chunk", 2), ("encode.chunk", 4)],
)
def test_a_killed_creation_keeps_what_it_encoded(tmp_path: Path, undisturbed: Path, point: str, number: int) -> None:
    folder = tmp_path / "campaign"
    done = program("create", folder, kill_at=f"{point}:{number}", script=SCRIPT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    # The campaign is there, and nothing is charged yet.
    assert Campaign(folder).status().stage == "planned"
    assert state_of(folder).charges == ()
    kept = sum(CHUNKS[: number if point == "encode.chunk" else number - 1])
    assert calls_to_open(folder) == sum(CHUNKS) - kept
    done = program("run", folder, script=SCRIPT)
    assert done.returncode == 0, done.stderr
    for name in ("features.npy", "held-out-features.npy"):
        assert np.array_equal(np.load(folder / name), np.load(undisturbed / name))
    assert released(folder) == released(undisturbed)
    assert Campaign(folder).verify().holds


def test_a_killed_run_that_encodes_again_continues(tmp_path: Path, undisturbed: Path) -> None:
    folder = Path(shutil.copytree(undisturbed, tmp_path / "campaign"))
    (folder / "features.npy").unlink()
    done = program("run", folder, kill_at="encode.chunk:2", script=SCRIPT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert calls_to_open(folder) == 22
    assert np.array_equal(np.load(folder / "features.npy"), np.load(undisturbed / "features.npy"))


def test_a_full_disk_is_a_clear_error_and_what_was_encoded_stays(tmp_path: Path, undisturbed: Path) -> None:
    folder = Path(shutil.copytree(undisturbed, tmp_path / "campaign"))
    for name in ("features.npy", "features.tags"):
        (folder / name).unlink()
    done = program("run", folder, limit=3_000, script=SCRIPT)
    assert done.returncode == 1
    assert any(word in done.stderr for word in ("OSError", "File too large", "disk")), done.stderr
    assert calls_to_open(folder) == 150
    assert np.array_equal(np.load(folder / "features.npy"), np.load(undisturbed / "features.npy"))
