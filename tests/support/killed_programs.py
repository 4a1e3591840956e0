"""Campaigns in processes of their own, which may be killed, and what they left behind."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from safetensors.numpy import load_file
from warm_processes import python

from dpal.campaign import fault_points
from dpal.campaign.facts import ChargedSelection, ChargedTraining
from dpal.campaign.state import State, fold
from dpal.campaign.store import Store

PROGRAM = Path(__file__).parents[1] / "support" / "small_campaigns.py"
# Added to what is there: the package may be imported from a folder that only this variable names.
PATH = os.pathsep.join(filter(None, [str(PROGRAM.parent), os.environ.get("PYTHONPATH")]))


def program(
    action: str,
    *words: object,
    kill_at: str | None = None,
    seed: int | None = 7,
    limit: int | None = None,
    script: Path = PROGRAM,
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": PATH, "SEED": json.dumps(seed)}
    if kill_at is not None:
        environment[fault_points.VARIABLE] = kill_at
    return python(script, action, *words, environment=environment, largest_file=limit)


def state_of(folder: Path) -> State:
    store = Store(folder, read_only=True)
    try:
        return fold(store.recorded())
    finally:
        store.close()


def copied(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "campaign"))


def released(folder: Path) -> list[object]:
    """What left the machine: who was selected, and every model's weights, bit for bit."""
    state = state_of(folder)
    selections = [(each.group, each.to_label, each.retired, each.threshold) for each in state.selected]
    return [selections, [weights(folder / each.file) for each in state.trained]]


def weights(file: Path) -> dict[str, bytes]:
    return {name: each.tobytes() for name, each in sorted(load_file(file).items())}


def charged(state: State) -> list[ChargedSelection | ChargedTraining]:
    return [charge for _, charge in state.charges]
