"""Scouting: short, cheap phases that find out what is worth labelling, then one long phase on everything.

For selections that stay inside, which cost next to nothing: what a plan decides is how much of the initial set's budget
to spend on the model that chooses.
"""

from dataclasses import dataclass, replace

import numpy as np

from dpal.planning.naive import no_al
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.objective import objective
from dpal.planning.plan import Phase, Proposal, Schedule
from dpal.planning.setting import Setting
from dpal.planning.spending import Progress
from dpal.planning.step_amplification import next_phase
from dpal.privacy.calibration import noise_multiplier_for, sampling_probability_for


def scouting(setting: Setting) -> Proposal:
    """Scouting, or training on random labels at once where the objective expects that to be at least as good."""
    at_once = no_al(setting)
    if not setting.query_sizes:
        return at_once
    schedule = Scouting(
        epsilon_share=setting.scouting_epsilon_share, steps_share=setting.scouting_steps_share
    ).schedule(setting)
    if not setting.selection_pays:
        return Proposal(setting=setting, schedule=schedule)
    gain = objective(schedule, setting.group_sizes) / objective(at_once.schedule, (setting.labelling_budget,)) - 1
    if gain <= 0:
        remark = (
            "Active learning is not expected to pay here, so all labels are drawn at random and trained on at once "
            f"(objective: scouting is {-100 * gain:.1f}% below)."
        )
        return replace(at_once, remark=remark)
    remark = f"Objective: {100 * gain:.1f}% above training on as many random labels."
    return Proposal(setting=setting, schedule=schedule, remark=remark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scouting:
    """How much goes into scouting: a share of ε that the initial set has spent by its end, and a share of the steps.

    Half of ε and a tenth of the steps were the best of six on a part of CIFAR-10's training set (docs/results.md), 0.7
    and 0.3 for heads on an encoder (docs/planning.md).
    """

    epsilon_share: float = 0.5
    steps_share: float = 0.1

    def schedule(self, setting: Setting) -> Schedule:
        """Phases with as many steps together as training on everything at once."""
        total, rounds, sizes = sum(NaivePhases.naive_steps(setting)), len(setting.query_sizes), setting.group_sizes
        short = max(1, round(self.steps_share * total / rounds))
        noise = self._noise(setting, total)
        rate = sampling_probability_for(
            target_epsilon=self.epsilon_share * setting.target_epsilon,
            target_delta=setting.target_delta,
            noise_multiplier=noise,
            steps=rounds * short,
            accountant=setting.searcher,
            history=setting.before,
        )
        rate = min(rate, setting.batch_size / setting.initial_size)
        # While scouting, everyone who is labelled trains at the same rate; the last phase makes up for what is left.
        phases = tuple(Phase.of(short, noise, (rate,) * groups, sizes) for groups in range(1, rounds + 1))
        steps = (*(short,) * rounds, max(1, total - rounds * short))
        rates = (*(rate,) * rounds, min(1.0, setting.batch_size / setting.labelling_budget))
        context = NaivePhases(setting=setting, rates=rates, steps=steps, noise_multiplier=noise)
        selections = setting.selections(context.decisive_order())
        progress = Progress.of(setting, phases, selections)
        solved = next_phase(
            context,
            progress,
            selections,
            spent=np.array(progress.spending(setting.searcher).trained),
            target=setting.target_epsilon,
            fixed_steps=steps[-1],
        )
        return Schedule(phases=(*phases, solved.phase), selections=selections)

    @staticmethod
    def _noise(setting: Setting, steps: int) -> float:
        """The noise of a training on everything at once, from which the phases start."""
        rate = min(1.0, setting.batch_size / setting.labelling_budget)
        return noise_multiplier_for(
            target_epsilon=setting.target_epsilon,
            target_delta=setting.target_delta,
            phases=((rate, steps),),
            accountant=setting.searcher,
            history=setting.before,
        )
