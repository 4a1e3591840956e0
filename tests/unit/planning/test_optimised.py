"""The optimiser: free choices by an objective, never worse than where it starts, and never above the target."""

import math

import pytest
from small_settings import small_setting

from dpal.planning.objective import objective
from dpal.planning.optimised import Choices, _climb, _query_sizes, optimised
from dpal.planning.spending import spending
from dpal.planning.step_amplification import step_amplification


@pytest.mark.parametrize("changed", [{}, {"selection": "laplace", "selection_epsilon": 2.0}])
def test_it_is_never_worse_than_where_it_starts_and_keeps_the_promise(changed: dict) -> None:
    setting = small_setting(**changed)
    proposal, start = optimised(setting), step_amplification(setting)
    best = objective(proposal.schedule, proposal.setting.group_sizes)
    assert best >= objective(start.schedule, setting.group_sizes)
    assert ("above step amplification" in proposal.remark) == (best > objective(start.schedule, setting.group_sizes))
    found = spending(proposal.setting, proposal.schedule, 3, setting.certifier)
    assert max(*found.groups, found.unselected, found.campaign) <= 8
    # Sizes were given, so they stay.
    assert proposal.setting.query_sizes == setting.query_sizes


def test_the_climb_finds_a_peak_inside_its_limits() -> None:
    def value(choices: Choices) -> float:
        return -((choices.log_steps - 0.25) ** 2) - (choices.tilt + 9) ** 2

    found = _climb(value, ["log_steps", "tilt"])
    assert found.log_steps == pytest.approx(0.25, abs=0.13)
    assert found.tilt == -1.0
    assert (found.log_selection, found.log_query_ratio) == (0, 0)


def test_what_cannot_be_planned_is_not_climbed_to() -> None:
    """Candidates without a plan count as minus infinity; then the start is the best."""
    assert _climb(lambda choices: 0.0 if choices == Choices() else -math.inf, ["log_steps", "tilt"]) == Choices()


@pytest.mark.parametrize("log_ratio", [-1.5, -0.2, 0.0, 0.3])
def test_query_sizes_keep_their_sum_and_nobody_is_left_with_none(log_ratio: float) -> None:
    for sizes in ((300, 100), (7, 7, 7, 7), (1, 1, 1), ()):
        setting = small_setting(query_sizes=sizes)
        changed = _query_sizes(setting, log_ratio)
        assert sum(changed) == sum(sizes) and len(changed) == len(sizes)
        assert all(size >= 1 for size in changed)


def test_a_negative_ratio_asks_for_more_at_first() -> None:
    assert _query_sizes(small_setting(query_sizes=(200, 200)), -math.log(3)) == (300, 100)
