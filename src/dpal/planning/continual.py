"""Continual learning: new records first train alone, until they have caught up; then everyone trains together."""

from dpal.planning.naive_phases import NaivePhases
from dpal.planning.plan import Phase, Proposal, Schedule
from dpal.planning.setting import Setting
from dpal.planning.spending import spending
from dpal.privacy.search import most_that_fits


def continual(setting: Setting) -> Proposal:
    """The paper's Appendix, "continual learning": before each shared phase one with the new group alone."""
    context = NaivePhases.of(setting, accountant=setting.searcher)
    selections = setting.selections(context.decisive_order())
    sizes = setting.group_sizes
    shared = [
        Phase.of(steps, context.noise_multiplier, (rate,) * (index + 1), sizes)
        for index, (rate, steps) in enumerate(zip(context.rates, context.steps, strict=True))
    ]
    alone: dict[int, Phase] = {}

    def schedule(trials: dict[int, Phase]) -> Schedule:
        phases: list[Phase] = []
        for index, phase in enumerate(shared):
            if index in trials:
                phases.append(trials[index])
            phases.append(phase)
        return Schedule(phases=tuple(phases), selections=selections)

    def within(trials: dict[int, Phase], group: int) -> bool:
        candidate = schedule(trials)
        spent = spending(setting, candidate, len(candidate.phases), setting.searcher)
        return max(spent.groups[group], spent.campaign) <= setting.target_epsilon

    for group in range(1, len(sizes)):
        rate = min(1.0, setting.batch_size / sizes[group])
        rates = (*(0.0,) * group, rate)

        def fits(steps: int, group: int = group, rates: tuple[float, ...] = rates) -> bool:
            return within({**alone, group: Phase.of(steps, context.noise_multiplier, rates, sizes)}, group)

        steps = most_that_fits(fits, limit=10**7)
        if steps:
            alone[group] = Phase.of(steps, context.noise_multiplier, rates, sizes)
    return Proposal(setting=setting, schedule=schedule(alone))
