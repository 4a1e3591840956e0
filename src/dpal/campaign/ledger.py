"""What was charged, as mechanisms, and the ε that follows from the charges alone, kept in the folder once computed."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpal import __version__
from dpal.campaign.facts import ChargedMean, ChargedSelection, ChargedTraining, to_text
from dpal.campaign.files import write_text
from dpal.campaign.layout import SPENT
from dpal.campaign.state import Charge, State
from dpal.errors import DamagedCampaign
from dpal.planning.plan import Phase, Plan, Schedule
from dpal.planning.setting import Setting
from dpal.planning.spending import Spending, spending
from dpal.planning.unit_words import adjacency
from dpal.selection.registry import selection_from_json
from dpal.selection.selection import Selection

INITIAL = {"mechanism": "random"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The charges in order, as the phases and selections they pay for. The initial set, drawn at random, is free."""

    phases: tuple[Phase, ...]
    selections: tuple[Selection, ...]
    # Of the private mean; None if none was charged.
    mean_noise_multiplier: float | None = None

    @staticmethod
    def of(state: State) -> "Ledger":
        """From the committed charges and nothing else."""
        phases: list[Phase] = []
        selections: list[Selection] = []
        mean: float | None = None
        for _, charge in state.charges:
            match charge:
                case ChargedMean():
                    mean = charge.noise_multiplier
                case ChargedTraining():
                    phases.append(phase_of(charge))
                case ChargedSelection():
                    selections += [selection_from_json(charge.selection)] if charge.group > 0 else []
        return Ledger(phases=tuple(phases), selections=tuple(selections), mean_noise_multiplier=mean)

    def spending(self, setting: Setting) -> Spending | None:
        """What has been spent on each group. None if nothing that uses a record has been charged."""
        charged = replace(setting, mean_noise_multiplier=self.mean_noise_multiplier)
        phases = self.phases
        if not phases:
            return _mean_alone(charged)
        groups = len(phases[-1].sampling_probabilities)
        if len(self.selections) > groups - 1:
            # A selection after the last phase: its records wait to be trained on, and have been trained on 0 times.
            rates = (*phases[-1].sampling_probabilities, *(0.0,) * (len(self.selections) + 1 - groups))
            waiting = Phase(steps=0, noise_multiplier=1.0, expected_batch_size=1.0, sampling_probabilities=rates)
            phases = (*phases, waiting)
        schedule = Schedule(phases=phases, selections=self.selections)
        return spending(charged, schedule, len(phases), setting.certifier)

    def epsilon(self, setting: Setting) -> float:
        """The one number for what was spent: the largest ε of any record, certified from the charges alone."""
        return _epsilon(self, setting)

    def to_json(self, setting: Setting) -> dict[str, object]:
        """For other accountants: what happened to a record of each group, in numbers."""
        return {
            "unit": setting.unit,
            "adjacency": f"zero-out: {adjacency(setting.unit)}",
            "target_epsilon": setting.target_epsilon,
            "target_delta": setting.target_delta,
            "accountant": setting.accountant,
            "accounting": setting.accounting,
            "promise": setting.promise,
            "mean": mean_body(self.mean_noise_multiplier),
            "phases": [training_body(phase) for phase in self.phases],
            "selections": [selection.to_json() for selection in self.selections],
        }


def _mean_alone(setting: Setting) -> Spending | None:
    """What a mean costs before the first phase: the same for every record."""
    if setting.mean is None:
        return None
    epsilon = setting.certifier.epsilon(setting.before, setting.target_delta)
    return Spending(groups=(epsilon,), trained=(epsilon,), unselected=epsilon, campaign=epsilon)


@lru_cache(maxsize=64)
def _epsilon(ledger: Ledger, setting: Setting) -> float:
    spent = ledger.spending(setting)
    return 0.0 if spent is None else max(*spent.groups, spent.unselected, spent.campaign)


def mean_body(noise_multiplier: float | None) -> dict[str, Any] | None:
    """A private mean's numbers, if there is one."""
    return None if noise_multiplier is None else {"noise_multiplier": noise_multiplier}


def training_body(phase: Phase) -> dict[str, Any]:
    """A phase's numbers."""
    return {
        "steps": phase.steps,
        "noise_multiplier": phase.noise_multiplier,
        "expected_batch_size": phase.expected_batch_size,
        "sampling_probabilities": phase.sampling_probabilities,
    }


def phase_of(charge: ChargedTraining) -> Phase:
    """The phase that a charge pays for."""
    return Phase(
        steps=charge.steps,
        noise_multiplier=charge.noise_multiplier,
        expected_batch_size=charge.expected_batch_size,
        sampling_probabilities=charge.sampling_probabilities,
    )


def charge_for_training(schedule: Schedule, number: int) -> ChargedTraining:
    """What a phase of the plan costs."""
    return ChargedTraining(phase=number, **training_body(schedule.phases[number]))


def charge_for_selection(schedule: Schedule, group: int) -> ChargedSelection:
    """What a selection of the plan costs. Group 0 is the initial set."""
    body: Mapping[str, Any] = INITIAL if group == 0 else schedule.selections[group - 1].to_json()
    return ChargedSelection(group=group, selection=body)


def charge_for_mean(schedule: Schedule) -> ChargedMean:
    """What the plan's private mean costs."""
    if schedule.mean_noise_multiplier is None:
        raise DamagedCampaign("A private mean was charged, but the plan has none: someone changed the facts.")
    return ChargedMean(noise_multiplier=schedule.mean_noise_multiplier)


def planned_charge(charge: Charge, schedule: Schedule) -> Charge:
    """What the plan says this charge should be."""
    match charge:
        case ChargedMean():
            return charge_for_mean(schedule)
        case ChargedTraining(phase=phase):
            return charge_for_training(schedule, phase)
        case ChargedSelection(group=group):
            return charge_for_selection(schedule, group)


def epsilon_spent(folder: Path, state: State, plan: Plan) -> float:
    """What all charges so far cost: as noted for exactly these charges, or computed from them and noted.

    Without the note, a long plan takes a minute to recompute.
    """
    known = noted_epsilon(folder, state)
    if known is not None:
        return known
    epsilon = Ledger.of(state).epsilon(plan.setting)
    # Readers note it too. If they may not write, or another one is writing, nothing is lost.
    with suppress(OSError):
        charges = _hash_of_charges(state)
        note = {"charges": charges, "epsilon": epsilon, "check": _check(charges, epsilon)}
        write_text(folder / SPENT, json.dumps(note) + "\n")
    return epsilon


def noted_epsilon(folder: Path, state: State) -> float | None:
    """The ε that was noted for exactly these charges. verify compares it with what it recomputes."""
    try:
        note = json.loads((folder / SPENT).read_text(encoding="utf-8"))
        epsilon, charges = float(note["epsilon"]), _hash_of_charges(state)
        return epsilon if (note["charges"], note["check"]) == (charges, _check(charges, epsilon)) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _hash_of_charges(state: State) -> str:
    """The hash of everything that ε depends on: the plan's setting, the charges, and the version that computes."""
    charges = [to_text(charge) for _, charge in state.charges]
    return hashlib.sha256("\n".join((__version__, state.created.plan_hash, *charges)).encode()).hexdigest()


def _check(charges: str, epsilon: float) -> str:
    return hashlib.sha256(f"{charges} {epsilon!r}".encode()).hexdigest()
