import pytest
from settings import PAPER, PAPERS_SELECTION

import dpal


def test_laplace_costs_what_the_paper_says() -> None:
    plan = dpal.plan(target_epsilon=8, accountant="rdp", **PAPER["cifar10"], **PAPERS_SELECTION)
    assert plan.never_selected_epsilon_by_phase == pytest.approx((0, 0.5, 1, 1.5, 2))
    assert [
        group.epsilon_by_phase[group_index - 1] for group_index, group in enumerate(plan.groups) if group_index
    ] == (pytest.approx([0, 0.5, 1, 1.5]))
