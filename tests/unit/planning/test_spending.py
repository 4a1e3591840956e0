from dataclasses import replace

import pytest
from counted import counted
from histories import step
from settings import PAPER, PAPERS_SELECTION
from small_settings import small_setting

import dpal
from dpal.planning.plan import Phase, Schedule
from dpal.planning.spending import Progress, spending, training_history
from dpal.privacy import composition, renyi
from dpal.privacy.accountants import PldAccountant, RdpAccountant
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


@pytest.mark.parametrize("done", [5, 10, 20])
def test_accounting_for_one_phase_more_grows_with_its_groups_alone(done: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search tries many candidates for a phase: none may cost as much as all the phases before it."""
    sizes = (400, *(40,) * done)
    setting = small_setting(query_sizes=sizes[1:], selection="laplace", accounting="basic")
    selection = LaplaceSelection(query_size=40, unlabelled=1600, epsilon=0.05, grid_steps=16)
    phases = [
        Phase.of(9 + number, 3.0 - number / 50, tuple(0.05 + group / 1000 for group in range(number)), sizes)
        for number in range(1, done + 2)
    ]
    progress = Progress.of(setting, tuple(phases[:-1]), (selection,) * done)
    pld, rdp = PldAccountant(interval=1e-2), RdpAccountant()
    progress.then(replace(phases[-1], steps=8)).spending(pld)
    transforms = counted(monkeypatch, composition, "_spectrum")
    after = progress.then(phases[-1])
    after.spending(pld)
    # One transform for each group and direction.
    assert len(transforms) == 2 * (done + 1)
    after.spending(rdp)
    curves = counted(monkeypatch, renyi, "log_moments")
    progress.then(replace(phases[-1], noise_multiplier=1.0 + done / 100)).spending(rdp)
    assert [len(probabilities) for probabilities, *_ in curves] == [done + 1]


def test_phase_by_phase_and_at_once_agree() -> None:
    setting = small_setting(query_sizes=(300,), selection="laplace", accounting="renyi", mean_noise_multiplier=9.0)
    schedule = Schedule(phases=PHASES, selections=(SELECTION,))
    continued = Progress.of(setting, (), (SELECTION,)).then(PHASES[0]).then(PHASES[1])
    for accountant in (RdpAccountant(), PldAccountant()):
        found, at_once = continued.spending(accountant), spending(setting, schedule, 2, accountant)
        assert found.groups == pytest.approx(at_once.groups, abs=1e-8)
        assert found.trained == pytest.approx(at_once.trained, abs=1e-8)
        assert (found.unselected, found.campaign) == pytest.approx((at_once.unselected, at_once.campaign), abs=1e-8)
