"""The names of files, and which of them belong to a phase."""

from pathlib import Path

from dpal.campaign.files import draft_of
from dpal.campaign.layout import WEIGHTS, checkpoint_name, files_of_phase, models_in


def touched(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()


def test_phases_are_counted_from_one_in_names() -> None:
    assert checkpoint_name(0) == "checkpoints/phase-1.safetensors"


def test_a_phase_has_its_own_files_and_nobody_elses(tmp_path: Path) -> None:
    """Giving up phase 1 removes these: they must not be those of phase 10, or the first weights."""
    touched(tmp_path, WEIGHTS, *(checkpoint_name(phase) for phase in (0, 1, 9, 10)))
    model = tmp_path / checkpoint_name(0)
    for phase in (0, 9):
        draft_of(tmp_path / checkpoint_name(phase)).touch()
    assert sorted(files_of_phase(tmp_path, 0)) == sorted([model, draft_of(model)])
    assert files_of_phase(tmp_path, 5) == []


def test_drafts_are_not_models(tmp_path: Path) -> None:
    touched(tmp_path, WEIGHTS, checkpoint_name(1), "checkpoints/.phase-3.safetensors.draft")
    assert models_in(tmp_path) == ["checkpoints/initial.safetensors", "checkpoints/phase-2.safetensors"]
    assert models_in(tmp_path / "elsewhere") == []
