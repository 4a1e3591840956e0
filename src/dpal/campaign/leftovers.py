"""What a process that died may leave in the folder, and its removal when the next writer opens the campaign."""

from collections.abc import Sequence
from pathlib import Path

from dpal.campaign.changed_config import settle
from dpal.campaign.files import sync_folder
from dpal.campaign.large_contents import blank_withdrawn, remove_unrecorded
from dpal.campaign.layout import SCORES, files_of_phase, scratch_models
from dpal.campaign.state import State
from dpal.campaign.step_randomness import SealedKeys


def has_leftovers(folder: Path, state: State, sealed: Sequence[int]) -> bool:
    """Whether there is a sealed key or snapshot that nothing needs, or a model of a phase that was given up."""
    needed = needed_keys(state)
    if list(sealed) != needed or not SealedKeys(folder).snapshots() <= set(needed):
        return True
    return any(files_of_phase(folder, phase) for phase in state.given_up)


def remove_leftovers(folder: Path, state: State) -> None:
    """Erase keys, scores, copies and half-written models that nothing needs; complete withdrawals and given-up phases.

    For the writer only.
    """
    SealedKeys(folder).erase_all_but(needed_keys(state))
    (folder / SCORES).unlink(missing_ok=True)
    if state.created.large:
        remove_unrecorded(folder, state)
    if state.created.large and state.withdrawn:
        blank_withdrawn(folder, state)
    for phase in state.given_up:
        remove_files_of_phase(folder, phase)
    for path in scratch_models(folder):
        path.unlink()
    settle(folder, state.settings)


def remove_files_of_phase(folder: Path, phase: int) -> None:
    """Remove a phase's model and its drafts."""
    files = files_of_phase(folder, phase)
    for path in files:
        path.unlink()
    if files:
        sync_folder(files[0].parent)


def needed_keys(state: State) -> list[int]:
    """The numbers of the facts whose sealed keys must be there: one while a step is open, otherwise none."""
    return [] if state.sealed_with is None else [state.sealed_with]
