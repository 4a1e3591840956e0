"""dpal: differentially private active learning, with one (ε, δ) promise for training and selection together."""

from importlib.metadata import version

__version__ = version("dpal")
