"""dpal: differentially private active learning, with one (ε, δ) promise for training and selection together."""

from importlib.metadata import version

from dpal.planning.api import plan
from dpal.planning.certify import load_plan, read_plan
from dpal.planning.plan import Plan

__version__ = version("dpal")
__all__ = ["Plan", "__version__", "load_plan", "plan", "read_plan"]
