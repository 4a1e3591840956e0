"""dpal: differentially private active learning, with one (ε, δ) promise for training and selection together."""

from importlib.metadata import PackageNotFoundError, version

from dpal.planning.api import plan
from dpal.planning.certify import load_plan, read_plan
from dpal.planning.plan import Plan

try:
    __version__ = version("dpal")
except PackageNotFoundError:  # run from a source tree that nobody installed
    __version__ = "0+source"
__all__ = ["Plan", "__version__", "load_plan", "plan", "read_plan"]
