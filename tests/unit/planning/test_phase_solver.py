"""One phase, solved: every group just under its target, the batch on its own, and a reason where there is none."""

from collections.abc import Callable

import numpy as np
import pytest
from histories import step
from settings import SMALL
from small_settings import small_setting

import dpal
from dpal.errors import NoPlan
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.phase_solver import NoRoom, PhaseTask, solve_phase
from dpal.planning.plan import Phase
from dpal.planning.rate_tables import useful_orders
from dpal.privacy.renyi import renyi_curve

SETTING = small_setting(query_sizes=(300,))
NAIVE = NaivePhases.of(SETTING)
ORDERS = useful_orders(NAIVE.decisive_order())
BEFORE = NAIVE.naive_history(1)
SPENT = SETTING.certifier.epsilon(BEFORE, SETTING.target_delta)


def certify(phase: Phase) -> np.ndarray:
    """What the two groups have spent: the first one has been through a phase already."""
    own, new = ([(step(rate, phase.noise_multiplier), phase.steps)] for rate in phase.sampling_probabilities)
    return np.array([SETTING.certifier.epsilon(history, SETTING.target_delta) for history in ([*BEFORE, *own], new)])


def task(**changed: object) -> PhaseTask:
    options = {
        "sizes": (400, 300),
        "batch_size": 100,
        "noise_multiplier": NAIVE.noise_multiplier,
        "targets": np.full(2, 8.0),
        "spent": np.array([SPENT, 0.0]),
        "spent_curves": np.array([renyi_curve(BEFORE, tuple(ORDERS)), np.zeros(len(ORDERS))]),
        "orders": ORDERS,
        "delta": SETTING.target_delta,
        "fixed_steps": None,
        "certify": certify,
        "tolerance": 2e-4,
    }
    return PhaseTask(**(options | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", [None, 70])
def test_every_group_ends_just_under_its_target_and_the_batch_is_on_its_own(steps: int | None) -> None:
    solved = solve_phase(task(fixed_steps=steps))
    assert np.array_equal(solved.spent, certify(solved.phase))
    assert (solved.spent <= 8).all() and (solved.spent >= 8 * (1 - 2e-4)).all()
    assert solved.phase.expected_batch_size == pytest.approx(100, rel=2e-3)
    # Whoever has spent less may take part more often.
    assert solved.phase.sampling_probabilities[1] > solved.phase.sampling_probabilities[0]


def test_steps_come_before_noise_unless_they_are_fixed() -> None:
    free, fixed = solve_phase(task()).phase, solve_phase(task(fixed_steps=70)).phase
    assert free.noise_multiplier == pytest.approx(NAIVE.noise_multiplier, rel=0.01)
    assert fixed.steps == 70 < free.steps
    assert fixed.noise_multiplier < free.noise_multiplier


def test_a_group_that_has_spent_its_target_has_no_room() -> None:
    with pytest.raises(NoRoom, match="leaves group 2 too little training budget in phase 2: ε 8 is due by then"):
        solve_phase(task(spent=np.array([SPENT, 8.0])))


def test_a_certifier_that_is_never_satisfied_gets_no_phase() -> None:
    """The tables only propose. What the certifier finds too expensive is never returned."""
    never: Callable[[Phase], np.ndarray] = lambda phase: np.full(2, 8.0 + 1e-9)  # noqa: E731
    with pytest.raises(NoPlan, match="no sampling rates were found that end phase 2 within its ε of 8"):
        solve_phase(task(certify=never))


def test_a_rate_of_one_cannot_go_higher_and_its_group_ends_below() -> None:
    solved = solve_phase(task(sizes=(400, 2), fixed_steps=1))
    assert solved.phase.sampling_probabilities[1] == 1
    assert solved.spent[1] < 7.5 < 7.99 < solved.spent[0] <= 8
    # Where everyone takes part and the batch is still too small, it stays so.
    everyone = solve_phase(task(sizes=(90, 5), fixed_steps=2))
    assert everyone.phase.sampling_probabilities == (1, 1)
    assert everyone.phase.expected_batch_size == 95
    assert (everyone.spent <= 8).all()


def test_a_group_without_budget_is_named() -> None:
    settings = {**SMALL, "target_epsilon": 4.0, "selection": "gaussian", "accounting": "renyi"}
    with pytest.raises(NoPlan, match=r"leaves group 2 too little training budget in phase 2: ε 3.4\d is due by then"):
        dpal.plan(selection_epsilon=3.99, **settings)
