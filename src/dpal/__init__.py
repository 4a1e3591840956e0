"""dpal: differentially private active learning, with one (ε, δ) promise for training and selection together.

`dir(dpal)` lists the public names. They are imported on first use: `import dpal` is fast, and planning needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpal.imports import missing_package

if TYPE_CHECKING:
    from dpal import data, errors, models, planning, privacy, randomness, selection, training
    from dpal.campaign.campaign import Campaign
    from dpal.errors import DpalError
    from dpal.planning.certification import load_plan, read_plan
    from dpal.planning.plan import Plan
    from dpal.planning.request import plan

    __version__: str

__all__ = [
    "Campaign",
    "DpalError",
    "Plan",
    "__version__",
    "data",
    "errors",
    "load_plan",
    "models",
    "plan",
    "planning",
    "privacy",
    "randomness",
    "read_plan",
    "selection",
    "training",
]

_HOMES = {
    "Campaign": "dpal.campaign.campaign",
    "DpalError": "dpal.errors",
    "Plan": "dpal.planning.plan",
    "load_plan": "dpal.planning.certification",
    "plan": "dpal.planning.request",
    "read_plan": "dpal.planning.certification",
}
_MODULES = ("data", "errors", "models", "planning", "privacy", "randomness", "selection", "training")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    try:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name in _MODULES:
            return import_module(f"dpal.{name}")
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from error
    raise AttributeError(f"module 'dpal' has no attribute {name!r}")


def _version() -> str:
    # Reading what is installed takes longer than many a command.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dpal")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+source"


def __dir__() -> list[str]:
    return sorted(__all__)
