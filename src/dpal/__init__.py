"""dpal: differentially private active learning, with one (ε, δ) promise for training and selection together."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from dpal.imports import install_hint
from dpal.planning.api import plan
from dpal.planning.certify import load_plan, read_plan
from dpal.planning.plan import Plan

try:
    __version__ = version("dpal")
except PackageNotFoundError:  # run from a source tree that nobody installed
    __version__ = "0+source"
if TYPE_CHECKING:
    from dpal.campaign.campaign import Campaign


def __getattr__(name: str) -> Any:
    """Campaign needs torch, planning does not: it is imported when it is asked for."""
    if name == "Campaign":
        try:
            from dpal.campaign.campaign import Campaign
        except ModuleNotFoundError as error:
            raise install_hint(error) or error from error
        return Campaign
    raise AttributeError(f"module 'dpal' has no attribute {name!r}")


__all__ = ["Campaign", "Plan", "__version__", "load_plan", "plan", "read_plan"]
