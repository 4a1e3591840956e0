"""Which records to label next. Raw scores never leave this folder.

Read acquisition (scores), grid (scores on a public grid), selection (what every kind is), then the kinds: cut,
threshold, noisy_scores, exponential, baselines. `registry` gives them names; `quality` measures them in simulations.
"""

from dpal.selection.acquisition import (
    Acquisition,
    Bald,
    Entropy,
    LeastConfidence,
    MinimumMargin,
    Random,
    probabilities_from_logits,
)
from dpal.selection.baselines import HighestScores, RandomSelection
from dpal.selection.cut import CutSelection
from dpal.selection.exponential import ExponentialSelection
from dpal.selection.noisy_scores import GaussianSelection, LaplaceSelection, SampledGaussianSelection
from dpal.selection.quality import Quality, quality
from dpal.selection.registry import ACQUISITIONS, SELECTIONS
from dpal.selection.selection import NOBODY, Chosen, Selection, SelectionBudget, top
from dpal.selection.threshold import ThresholdSelection

__all__ = [
    "ACQUISITIONS",
    "NOBODY",
    "SELECTIONS",
    "Acquisition",
    "Bald",
    "Chosen",
    "CutSelection",
    "Entropy",
    "ExponentialSelection",
    "GaussianSelection",
    "HighestScores",
    "LaplaceSelection",
    "LeastConfidence",
    "MinimumMargin",
    "Quality",
    "Random",
    "RandomSelection",
    "SampledGaussianSelection",
    "Selection",
    "SelectionBudget",
    "ThresholdSelection",
    "probabilities_from_logits",
    "quality",
    "top",
]
