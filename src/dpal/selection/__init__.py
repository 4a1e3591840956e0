"""Acquisition scores, and mechanisms that turn scores into ids. Raw scores never leave this folder."""

from dpal.selection.acquisition import Acquisition, Bald, Entropy, LeastConfidence, MinimumMargin, Random
from dpal.selection.coreset import CoreSet
from dpal.selection.mechanisms import Chosen, NoisyTop, OneShotExponential, SelectionMechanism, Top, Uniform
from dpal.selection.planned import mechanism_of
from dpal.selection.quality import Quality, quality
from dpal.selection.threshold import ThresholdSampling

__all__ = [
    "Acquisition",
    "Bald",
    "Chosen",
    "CoreSet",
    "Entropy",
    "LeastConfidence",
    "MinimumMargin",
    "NoisyTop",
    "OneShotExponential",
    "Quality",
    "Random",
    "SelectionMechanism",
    "ThresholdSampling",
    "Top",
    "Uniform",
    "mechanism_of",
    "quality",
]
