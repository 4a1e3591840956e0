"""What a process that died may leave in the folder, and its removal at the next opening for writing."""

from collections.abc import Sequence
from pathlib import Path

from dpal.campaign.changed_config import settle
from dpal.campaign.files import sync_folder
from dpal.campaign.sealed_keys import SealedKeys
from dpal.campaign.state import State, checkpoint_name


def is_tidy(folder: Path, state: State, sealed: Sequence[int]) -> bool:
    """Whether there is no sealed key but the one that is needed, and no model of a phase that was given up."""
    return list(sealed) == _needed(state) and not any(_models_of(folder, phase) for phase in state.given_up)


def tidy(folder: Path, state: State) -> None:
    """Erase keys that nothing needs any more, and finish what giving up had begun. For the writer only."""
    SealedKeys(folder).erase_all_but(_needed(state))
    for phase in state.given_up:
        remove_models_of(folder, phase)
    settle(folder, state.settings)


def remove_models_of(folder: Path, phase: int) -> None:
    """Remove what a phase has written."""
    models = _models_of(folder, phase)
    for path in models:
        path.unlink()
    if models:
        sync_folder(models[0].parent)


def _models_of(folder: Path, phase: int) -> list[Path]:
    """A phase's model and its drafts."""
    model = folder / checkpoint_name(phase)
    return [*model.parent.glob(f".{model.stem}.*draft"), *([model] if model.exists() else [])]


def _needed(state: State) -> list[int]:
    return [] if state.sealed_with is None else [state.sealed_with]
