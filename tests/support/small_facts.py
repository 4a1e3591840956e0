"""Facts of a small campaign, without the campaign: what readers of facts are tested with."""

from typing import Any

from dpal.campaign.facts import ChargedSelection, ChargedTraining, Created, Fact, Selected
from dpal.campaign.store import Recorded
from dpal.planning.plan import Phase, Schedule

RATES = ((0.5,), (0.25, 0.5))
PHASES = tuple(
    Phase(steps=3, noise_multiplier=2.0, expected_batch_size=2.0, sampling_probabilities=rates) for rates in RATES
)
# Two phases: the second one waits for a second group.
SCHEDULE = Schedule(phases=PHASES, selections=())


def created(**changed: Any) -> Created:
    fields: dict[str, Any] = {
        "dpal_version": "0",
        "plan": {},
        "plan_hash": "p" * 64,
        "contents": "c" * 64,
        "pool_size": 9,
        "classes": ("no", "yes"),
        "multi_label": False,
        "acquisition": "entropy",
        "initial": (),
        "weights": "w" * 64,
        "settings": "s" * 64,
        "seed": None,
    }
    return Created(**(fields | changed))


def charged_selection(group: int = 0) -> ChargedSelection:
    return ChargedSelection(group=group, selection={"mechanism": "random"})


def selected(charge: int, *names: str, group: int = 0, retired: tuple[str, ...] = ()) -> Selected:
    return Selected(charge=charge, group=group, to_label=names, retired=retired, threshold=None)


def charged_training(phase: int = 0) -> ChargedTraining:
    planned = PHASES[phase]
    return ChargedTraining(
        phase=phase,
        steps=planned.steps,
        noise_multiplier=planned.noise_multiplier,
        expected_batch_size=planned.expected_batch_size,
        sampling_probabilities=planned.sampling_probabilities,
    )


def recorded(*facts: Fact) -> list[Recorded]:
    """The facts with numbers from 1, as a database gives them."""
    return [Recorded(number, f"at {number}", fact, f"hash {number}") for number, fact in enumerate(facts, start=1)]
