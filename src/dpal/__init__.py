"""dpal: differentially private active learning, with one (ε, δ) promise for training and selection together."""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from dpal.imports import missing_package

if TYPE_CHECKING:
    from dpal.campaign.campaign import Campaign
    from dpal.planning.certification import load_plan, read_plan
    from dpal.planning.plan import Plan
    from dpal.planning.request import plan

try:
    __version__ = version("dpal")
except PackageNotFoundError:  # run from a source tree that nobody installed
    __version__ = "0+source"

# Imported when first used: Campaign needs torch, and plans need scipy, which take seconds to load.
_MODULES = {
    "Campaign": "dpal.campaign.campaign",
    "Plan": "dpal.planning.plan",
    "load_plan": "dpal.planning.certification",
    "plan": "dpal.planning.request",
    "read_plan": "dpal.planning.certification",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dpal' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if (missing := missing_package(error)) is None:
            raise
        raise missing from error


__all__ = ["Campaign", "Plan", "__version__", "load_plan", "plan", "read_plan"]
