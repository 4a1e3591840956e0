"""Giving up a phase that cannot finish: the charge counts, the key is erased, the model is never used."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpal.campaign import fault_points
from dpal.campaign.changed_config import (
    current_config,
    require_recorded,
    settle,
    with_training_settings,
    write_next,
)
from dpal.campaign.config import settings_hash
from dpal.campaign.facts import ChargedTraining, GivenUp
from dpal.campaign.ledger import Ledger
from dpal.campaign.leftovers import remove_files_of_phase
from dpal.campaign.state import State
from dpal.campaign.writer import Writer
from dpal.errors import BudgetExceeded, NothingToGiveUp
from dpal.planning.certification import read_plan
from dpal.planning.plan import Plan
from dpal.privacy.rounding import rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """A phase that was given up, and what the campaign costs at its end. Phases are counted from 1 here."""

    phase: int
    phases_left: int
    epsilon_at_end: float
    epsilon_budget: float
    target_delta: float
    settings_changed: bool

    def words(self) -> str:
        left = f"Phases still planned: {self.phases_left}" if self.phases_left else "It was the last phase"
        at_end = f"ε {rounded_up(self.epsilon_at_end, 4):.4f} of {self.epsilon_budget:g} at δ = {self.target_delta:g}"
        return (
            f"Phase {self.phase} is given up: its charge still counts, its key is erased, its model is never used. "
            f"{left}. The rest of the plan was certified again: at its end the campaign will have spent {at_end}, as "
            "planned."
        )


def give_up(writer: Writer, *, reason: str, settings: Sequence[str]) -> Abandoned:
    """Give up the open phase, and use these settings of the section training from then on."""
    folder, state = writer.folder, writer.state
    number, charge = _open_phase(state, folder)
    config = current_config(folder, state.settings)
    require_recorded(folder, config, state.settings)
    changed = with_training_settings(config, settings)
    plan = read_plan(json.dumps(state.created.plan))
    at_end = _epsilon_at_end(state, plan)
    if changed != config:
        write_next(folder, changed)
    fault_points.reached("give-up.prepared")
    fact = GivenUp(charge=number, phase=charge.phase, reason=reason, settings=settings_hash(changed))
    writer.add(fact, unseal=state.sealed_with)
    fault_points.reached("give-up.recorded")
    remove_files_of_phase(folder, charge.phase)
    fault_points.reached("give-up.tidied")
    settle(folder, writer.state.settings)
    return Abandoned(
        phase=charge.phase + 1,
        phases_left=len(plan.phases) - writer.state.phases_ended,
        epsilon_at_end=at_end,
        epsilon_budget=plan.setting.target_epsilon,
        target_delta=plan.setting.target_delta,
        settings_changed=changed != config,
    )


def _model_is_finished(state: State) -> bool:
    """Whether the facts say that the open phase's model is finished and only has to be recorded.

    A file in the folder does not say so: anyone may have put it there.
    """
    return state.produced is not None


def _open_phase(state: State, folder: Path) -> tuple[int, ChargedTraining]:
    if state.open_charge is None:
        raise NothingToGiveUp(
            f"No training phase is under way in {folder}: there is nothing to give up. Nothing was changed. Continue "
            f"with: dpal run {folder}"
        )
    number, charge = state.open_charge
    if not isinstance(charge, ChargedTraining):
        raise NothingToGiveUp(
            f"The step that is open in {folder} is a selection. Run it again, at no further cost: dpal run "
            f"{folder}. Nothing was changed."
        )
    if _model_is_finished(state):
        raise NothingToGiveUp(
            f"The model of phase {charge.phase + 1} is finished. It will be recorded by: dpal run {folder}. Nothing "
            "was changed."
        )
    return number, charge


def _epsilon_at_end(state: State, plan: Plan) -> float:
    """What the charges so far and the rest of the plan cost together. It is checked although it cannot have changed."""
    charged = Ledger.of(state)
    whole = Ledger(
        phases=(*charged.phases, *plan.phases[len(charged.phases) :]),
        selections=(*charged.selections, *plan.selections[len(charged.selections) :]),
        mean_noise_multiplier=plan.setting.mean_noise_multiplier,
    )
    epsilon = whole.epsilon(plan.setting)
    if not epsilon <= plan.setting.target_epsilon:
        raise BudgetExceeded(
            f"The charges so far and the rest of the plan cost ε {rounded_up(epsilon, 6):.6f}, more than the promised "
            f"{plan.setting.target_epsilon:g}: someone changed the plan or the facts. Nothing was changed."
        )
    return epsilon
