from dataclasses import dataclass, replace
from typing import ClassVar

from small_campaigns import linear_plan

from dpal.campaign.foreign_code import plan_code
from dpal.selection import LaplaceSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class Own(LaplaceSelection):
    name: ClassVar[str] = "own"


def test_a_plan_names_its_own_planner_and_selections() -> None:
    plan = linear_plan()
    assert plan_code(plan) == ()
    own = Own(query_size=2, unlabelled=10, epsilon=1.0, grid_steps=4)
    named = replace(plan, planner="clinic.plans:careful", selections=(own,))
    assert plan_code(named) == tuple(sorted(["clinic.plans:careful", f"{Own.__module__}:Own"]))
