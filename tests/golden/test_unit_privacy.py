"""Units of several records, enumerated: what leaks about a whole unit against what is certified (docs/units.md).

dpal's own code makes a unit's score from its records' and chooses among units, along every path of its coins. The unit
in question is number 0; its neighbour is the same pool with a blank in the place of all of its records.
"""

from dataclasses import dataclass, field, replace
from random import Random

import numpy as np
import pytest
from enumeration import outcomes
from selections import threshold
from toy_campaigns import BLANK, EPSILONS, RECORD, ToyCampaign, cut, exact_deltas, excess, geometric, shifted

from dpal.campaign.campaign_units import CampaignUnits
from dpal.data.units import EMPTY
from dpal.privacy.campaign_history import CampaignHistory
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.selection import ThresholdSelection

SLACK = 1e-9
# How many records each unit has.
SIZES = (3, 1, 2, 1, 3, 2)


def units_of(sizes: tuple[int, ...], seats: int = 3) -> CampaignUnits:
    starts = np.cumsum((0, *sizes))
    rows = [[starts[unit] + seat if seat < size else EMPTY for seat in range(seats)] for unit, size in enumerate(sizes)]
    return CampaignUnits(
        names=np.array([f"unit {unit}" for unit in range(len(sizes))]), table=np.array(rows), are_named=True
    )


def unit_scores(sizes: tuple[int, ...], by_record: list[list[float]]) -> list[float]:
    """By dpal's own code, from scores for every record of every unit."""
    units = units_of(sizes)
    _, places = units.scoring_order()
    by_place = np.zeros(places.max() + 1)
    for unit, scores in enumerate(by_record):
        for seat, score in enumerate(scores):
            by_place[places[seat, unit]] = score
    return units.scores(by_place, places).tolist()


def test_a_units_score_is_the_mean_of_its_own_records() -> None:
    given = [[0.25, 0.5, 0.75], [1.0], [0.0, 0.5], [0.3], [0.1, 0.2, 0.3], [0.9, 0.7]]
    assert unit_scores(SIZES, given) == pytest.approx([np.mean(scores) for scores in given])
    for unit in range(len(SIZES)):
        changed = [scores if other == unit else [0.123] * len(scores) for other, scores in enumerate(given)]
        # To the last bit.
        assert unit_scores(SIZES, changed)[unit] == unit_scores(SIZES, given)[unit]


@dataclass(frozen=True, kw_only=True)
class UnitCampaign(ToyCampaign):
    """A toy campaign of units; what is drawn, chosen and trained on is a unit."""

    sizes: tuple[int, ...] = SIZES
    steps: int = 3
    seed: int = 0
    # The planted bugs.
    drawn_once_per_record: bool = False
    decided_by_record: bool = False
    score: object = field(default=None)

    def record_scores(self, unit: int, history) -> list[float]:
        draw = Random(f"{self.seed} {unit} {history}")  # noqa: S311
        return [draw.randint(0, self.steps) / self.steps for _ in range(self.sizes[unit])]

    def _selected(self, states, number: int, world: str):
        if not self.decided_by_record:
            return super()._selected(states, number, world)
        # Every record of unit 0 meets the cut by itself; the unit joins as soon as one of them does.
        found = {}
        for (history, groups), before in states.items():
            left = [unit for unit in range(self.records) if not any(unit in group for group in groups)]
            owners = [unit for unit in left for _ in range(self.sizes[unit])]
            scores = [
                0.0 if unit == 0 and world == BLANK else score
                for unit in left
                for score in self.record_scores(unit, history)
            ]
            for (chosen, at), probability in self._choices(number, scores).items():
                joined = frozenset(owners[place] for place in chosen)
                key = (*history, at), (*groups, joined)
                found[key] = found.get(key, 0.0) + before * probability
        return found

    def _trained(self, states, phase: int, world: str):
        if not self.drawn_once_per_record:
            return super()._trained(states, phase, world)
        found = {}
        for (history, groups), before in states.items():
            release = np.array(self.noises[phase])
            for group, rate in zip(groups, self.rates[phase], strict=True):
                for unit in group:
                    by = 0 if unit == 0 and world == BLANK else self.contributions[unit]
                    for _ in range(self.sizes[unit]):
                        release = shifted(release, by, rate)
            for outcome, probability in enumerate(release.tolist()):
                key = (*history, outcome), groups
                found[key] = found.get(key, 0.0) + before * probability
        return found


def unit_campaign(seed: int, **changed) -> UnitCampaign:
    draw = Random(f"units {seed}")  # noqa: S311
    steps, units = draw.choice([(2, 5), (3, 4)])
    residues = draw.choice((2, 3))
    made = UnitCampaign(
        selections=tuple(cut(draw.choice((0.1, 0.5, 2.0)), draw.randint(1, units - 1), grid_steps=6) for _ in range(2)),
        noises=tuple(geometric(draw.choice((0.1, 0.4)), residues) for _ in range(3)),
        rates=tuple(tuple(draw.choice((0.2, 0.6)) for _ in range(phase + 1)) for phase in range(3)),
        records=units,
        initial=frozenset({0, 1} if seed % 4 == 0 else {1}),
        contributions=(1, *(draw.randrange(residues) for _ in range(5))),
        seed=seed,
        steps=steps,
    )

    def score(unit: int, history) -> float:
        by_record = [made.record_scores(other, history) for other in range(units)]
        return unit_scores(made.sizes[:units], by_record)[unit]

    return replace(made, score=score, **changed)


@pytest.mark.parametrize("seed", range(6))
def test_no_campaign_leaks_more_about_a_unit_than_is_certified(seed: int) -> None:
    difference, exact, certified = excess(unit_campaign(seed), BLANK)
    assert difference <= SLACK, (exact, certified)


def test_a_unit_drawn_once_per_record_is_noticed() -> None:
    campaign = UnitCampaign(
        selections=(cut(0.1, 1, grid_steps=2),) * 2,
        noises=(geometric(0.2, 7), (1.0,), (1.0,)),
        rates=((0.3,), (0.3, 0.3), (0.3, 0.3, 0.3)),
        score=lambda unit, history: 0.0,
        records=2,
        initial=frozenset({0, 1}),
        contributions=(1, 0, 0, 0, 0, 0),
    )
    assert excess(campaign, BLANK)[0] <= SLACK
    assert excess(campaign.planting(drawn_once_per_record=True), BLANK)[0] > 0.1


def test_a_units_records_decided_one_by_one_are_noticed() -> None:
    # Only the cuts tell anything about the unit: nothing is learned from it.
    silent = {
        "selections": (cut(0.5, 2, grid_steps=3),) * 2,
        "noises": ((1.0,),) * 3,
        "rates": ((0.5,), (0.5, 0.5), (0.5, 0.5, 0.5)),
        "contributions": (0,) * 6,
        "records": 4,
        "steps": 3,
        "sizes": (3, 1, 1, 1),
    }

    class Full(UnitCampaign):
        def record_scores(self, unit: int, history) -> list[float]:
            return [1.0] * self.sizes[unit] if unit == 0 else [1 / 3]

    campaign = Full(**silent, score=lambda unit, history: 1.0 if unit == 0 else 1 / 3)
    assert excess(campaign, BLANK)[0] <= SLACK
    wrong = campaign.planting(decided_by_record=True)
    certified = campaign.certified()
    assert max(e - certified.delta(at) for e, at in zip(exact_deltas(wrong, BLANK), EPSILONS, strict=True)) > 0.02
    # And each record alone would be within its cut.
    single = replace(campaign, sizes=(1, 1, 1, 1), cache={}, decided_by_record=True)
    assert excess(single, BLANK)[0] <= SLACK


class SixSteps(ThresholdSelection):
    """The same code on a grid that can be enumerated."""

    resolution = property(lambda self: 6)


def released(scores_of_unit: list[float], *, by_record: bool) -> dict:
    """What a threshold releases: the units that it takes, and the threshold. Others have one record each."""
    mechanism = threshold(2, high=0.6, low=0.25, epsilon=0.5, above=0.45, kind=SixSteps)
    others = [[0.3], [0.5], [0.7]]
    sizes = (len(scores_of_unit), 1, 1, 1)

    def run(randomness):
        if by_record:
            # The planted bug: every record has bits of its own, and the unit is released if any of them is taken.
            flat = [*scores_of_unit, *(score for (score,) in others)]
            owners = [0] * len(scores_of_unit) + [1, 2, 3]
            chosen = mechanism.choose(np.array(flat), highest=1.0, randomness=randomness)
            taken = {owners[place] for place in (*chosen.to_label.tolist(), *chosen.retired.tolist())}
            return frozenset(taken), chosen.threshold
        scores = np.array(unit_scores(sizes, [scores_of_unit, *others]))
        chosen = mechanism.choose(scores, highest=1.0, randomness=randomness)
        return frozenset((*chosen.to_label.tolist(), *chosen.retired.tolist())), chosen.threshold

    return outcomes(run)


@pytest.mark.parametrize("by_record", [False, True])
def test_released_selections_of_units(by_record: bool) -> None:
    mechanism = threshold(2, high=0.6, low=0.25, epsilon=0.5, above=0.45, kind=SixSteps)
    profile = CampaignProfile.of(
        CampaignHistory(training=((), ()), selections=(mechanism.released,)), follow_branches=False
    )
    worst = -1.0
    for scores in ([1.0, 1.0, 1.0], [0.9, 0.1, 0.8], [0.0, 0.0, 1.0]):
        first, second = released(scores, by_record=by_record), released([0.0] * 3, by_record=by_record)
        for p, q in ((first, second), (second, first)):
            for at in (0.0, 0.3, 0.7, 1.5):
                leak = sum(max(0.0, p.get(key, 0.0) - np.exp(at) * q.get(key, 0.0)) for key in p)
                worst = max(worst, leak - profile.delta(at))
    assert worst > 0.02 if by_record else worst <= SLACK


def test_the_worlds_differ() -> None:
    """A check that could not fail would be no check: something does leak."""
    campaign = unit_campaign(4)
    assert campaign.transcripts(RECORD) != campaign.transcripts(BLANK)
