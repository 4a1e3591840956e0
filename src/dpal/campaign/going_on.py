"""Going on although the newest model is no better than chance: only when told, and remembered as a fact."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from dpal.campaign import fault_points
from dpal.campaign.changed_config import (
    current_config,
    require_recorded,
    settle,
    with_training_settings,
    write_next,
)
from dpal.campaign.config import CampaignConfig, settings_hash
from dpal.campaign.facts import WentOn
from dpal.campaign.writer import Writer
from dpal.errors import InvalidArgument

# The default is fitted (docs/training.md), so much more than this would only diverge.
_LARGER = 3


AT_THE_END = (
    "The final model is no better than chance: do not use it. Check the labels, the order of the classes, and that "
    "the held-out set is of the same kind as the pool. The ε of another campaign on these records adds to what this "
    "one has spent, so rehearse it first (dpal rehearse)."
)


def go_on(writer: Writer, phase: int, settings: Sequence[str] = ()) -> CampaignConfig:
    """Record that the campaign goes on after this phase; returns the configuration that counts from now on."""
    folder, state = writer.folder, writer.state
    config = current_config(folder, state.settings)
    require_recorded(folder, config, state.settings)
    changed = with_training_settings(config, settings)
    if changed != config:
        write_next(folder, changed)
    fault_points.reached("go-on.prepared")
    writer.add(WentOn(phase=phase, settings=settings_hash(changed)))
    fault_points.reached("go-on.recorded")
    settle(folder, writer.state.settings)
    return changed


def require_stopped(stopped: int | None, settings: Sequence[str]) -> None:
    """Refuse new settings where the campaign has not stopped: they would change it for no stated reason."""
    if settings and stopped is None:
        allowed = (
            "left out: training settings change only where a campaign has stopped at a model no better than chance, "
            "or with dpal give-up. Nothing was changed"
        )
        raise InvalidArgument("--set", ", ".join(settings), allowed)


def advice(folder: Path | str, learning_rate: float) -> str:
    """What may be done about a model that is no better than chance, the most likely help first."""
    command = f"dpal run {shlex.quote(str(folder))} --go-on"
    larger = f"--set training.learning_rate={_LARGER * learning_rate:.3g}"
    return (
        "The campaign has stopped, and nothing more was charged. First check the labels, the order of the classes, and "
        "that the held-out set is of the same kind as the pool. What may help then, most likely first: (1) a public "
        f"encoder as the model, if it is not one already; (2) a larger learning rate, now {learning_rate:.3g}; (3) "
        "more labels; (4) fewer phases, so that each has more of ε. Only the learning rate can be changed here, at no "
        f"cost in privacy: {command} {larger}\nThe others need a new campaign, whose ε adds to what this one has "
        f"spent. To go on as it is: {command}"
    )
