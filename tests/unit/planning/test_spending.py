import pytest
from histories import step
from settings import PAPER, PAPERS_SELECTION
from small_settings import small_setting

import dpal
from dpal.planning.plan import Phase, Schedule
from dpal.planning.spending import spending, training_history
from dpal.privacy.accountants import RdpAccountant
from dpal.selection import LaplaceSelection

SIZES = (400, 300)
PHASES = (Phase.of(40, 2.0, (0.25,), SIZES), Phase.of(70, 1.5, (0.1, 0.2), SIZES))
SELECTION = LaplaceSelection(query_size=300, unlabelled=1600, epsilon=0.5, grid_steps=16)


def test_laplace_costs_what_the_paper_says() -> None:
    plan = dpal.plan(target_epsilon=8, accountant="rdp", **PAPER["cifar10"], **PAPERS_SELECTION)
    assert plan.never_selected_epsilon_by_phase == pytest.approx((0, 0.5, 1, 1.5, 2))
    assert [
        group.epsilon_by_phase[group_index - 1] for group_index, group in enumerate(plan.groups) if group_index
    ] == (pytest.approx([0, 0.5, 1, 1.5]))


def test_a_group_is_charged_for_the_phases_that_it_was_in() -> None:
    assert dict(training_history(PHASES, 0)) == {step(0.25, 2.0): 40, step(0.1, 1.5): 70}
    assert dict(training_history(PHASES, 1)) == {step(0.2, 1.5): 70}


def test_basic_accounting_by_hand() -> None:
    setting = small_setting(query_sizes=(300,), selection="laplace", accounting="basic")
    schedule, accountant = Schedule(phases=PHASES, selections=(SELECTION,)), RdpAccountant()
    first, second = (accountant.epsilon(training_history(PHASES, group), setting.target_delta) for group in (0, 1))
    found = spending(setting, schedule, 2, accountant)
    assert found.trained == pytest.approx((first, second))
    # The initial group is drawn at random; the second one was selected, and whoever was not has paid the same for it.
    assert found.groups == pytest.approx((first, second + 0.5))
    assert found.unselected == pytest.approx(0.5)
    assert found.campaign == pytest.approx(max(first, second + 0.5))
    # Before the selection nobody has paid for it.
    assert spending(setting, schedule, 1, accountant).unselected == 0


@pytest.mark.parametrize("accounting", ["basic", "renyi", "branch"])
def test_no_accounting_charges_less_than_training_alone(accounting: str) -> None:
    setting = small_setting(query_sizes=(300,), selection="laplace", accounting=accounting)
    found = spending(setting, Schedule(phases=PHASES, selections=(SELECTION,)), 2, RdpAccountant())
    assert all(own >= alone for own, alone in zip(found.groups, found.trained, strict=True))
    assert found.campaign >= max(*found.groups, found.unselected) - 1e-12
