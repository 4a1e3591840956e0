"""Small plans for audits, each made once."""

from functools import cache

from dpal.audit.attack import Target
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest


@cache
def plan(epsilon: float = 3.0, *, released: bool = False, unit: str | None = None) -> Plan:
    options = {"selections": "released", "selection": "threshold", "query_sizes": (600, 600)} if released else {}
    sizes = options or {"query_sizes": (1200,)}
    request = PlanRequest(target_epsilon=epsilon, initial_size=800, batch_size=200, epochs=8, unit=unit, **sizes)
    return request.plan(20_000)


def target(epsilon: float = 3.0, *, released: bool = False, unit: str | None = None) -> Target:
    return Target(plan=plan(epsilon, released=released, unit=unit), device="cpu", rows_per_unit=4 if unit else 1)
