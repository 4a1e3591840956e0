"""What another plan would look like: other ε, labels or phases, certified and drawn, while nothing is changed."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpal.campaign.reader import Reader
from dpal.errors import DpalError, InvalidArgument
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest
from dpal.web.downloads import DRAWING

_MOST_EPSILON = 100.0


def what_if(folder: Path, numbers: Mapping[str, str]) -> dict[str, Any]:
    """The plan with these numbers in place of the campaign's own, in a few numbers and as a picture."""
    reader = Reader(folder)
    plan, asked = reader.plan, reader.config().plan
    labels = sum(group.size for group in plan.groups)
    epsilon = _number("ε", numbers.get("epsilon", str(plan.setting.target_epsilon)), 0.01, _MOST_EPSILON)
    budget = round(_number("labels", numbers.get("labels", str(labels)), 2, plan.setting.pool_size))
    phases = round(_number("phases", numbers.get("phases", str(len(plan.phases))), 1, 20))
    if (epsilon, budget, phases) == (plan.setting.target_epsilon, labels, len(plan.phases)):
        # Its own numbers: the plan that was certified, whose sizes may have been given one by one.
        return {"plan": _summary(plan, is_own=True), "picture": _picture(plan)}
    request = asked or PlanRequest(target_epsilon=epsilon)
    # Sizes that were given one by one, and what follows from other sizes, are worked out again.
    request = replace(
        request,
        target_epsilon=epsilon,
        labelling_budget=budget,
        phases=phases,
        initial_size=None,
        query_sizes=None,
        batch_size=None,
        selection="random" if phases == 1 else None if request.selection == "random" else request.selection,
    )
    try:
        summary, picture = _drawn(request, plan.setting.pool_size)
    except DpalError as error:
        return {"problem": str(error)}
    return {"plan": summary, "picture": picture}


@lru_cache(maxsize=64)
def _drawn(request: PlanRequest, pool_size: int) -> tuple[dict[str, Any], str]:
    plan = request.plan(pool_size)
    return _summary(plan, is_own=False), _picture(plan)


def _picture(plan: Plan) -> str:
    from dpal.reports.plan_plot import plot_plan

    with tempfile.TemporaryDirectory() as place, DRAWING:
        file = Path(place, "plan.svg")
        plot_plan(plan, file)
        return file.read_text(encoding="utf-8")


def _summary(plan: Plan, *, is_own: bool) -> dict[str, Any]:
    return {
        "is_own": is_own,
        "steps": [phase.steps for phase in plan.phases],
        "noise": [round(phase.noise_multiplier, 3) for phase in plan.phases],
        "labels": [group.size for group in plan.groups],
        "epsilon": plan.setting.target_epsilon,
        "delta": plan.setting.target_delta,
    }


def _number(name: str, text: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise InvalidArgument(name, text[:20], f"a number from {least:g} to {most:,g}")
    return number
