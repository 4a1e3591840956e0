"""Small settings for planners, resolved: 400 records at the start, then 300 and 100."""

from typing import Any

from settings import SMALL

from dpal.planning.request import PlanRequest
from dpal.planning.setting import Setting


def small_setting(**changed: Any) -> Setting:
    options = {**SMALL, "selections": "released", "selection": "random", **changed}
    pool_size = options.pop("pool_size")
    return PlanRequest(**options).resolve(pool_size)
