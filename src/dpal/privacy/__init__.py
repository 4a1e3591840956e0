"""Privacy accounting, as pure mathematics: mechanisms, histories, accountants, and the noise that a budget needs."""

from dpal.privacy.accountants import Accountant, accountant_named
from dpal.privacy.calibration import noise_multiplier_for, sampling_probability_for, steps_for
from dpal.privacy.campaign_history import GroupedHistory, Selection
from dpal.privacy.joint import campaign_delta, campaign_epsilon
from dpal.privacy.mechanisms import (
    BernoulliSelection,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSampledGaussian,
    PureDP,
    mechanism_from_json,
)
from dpal.privacy.pld import PldAccountant
from dpal.privacy.renyi import RdpAccountant, renyi_curve

__all__ = [
    "Accountant",
    "BernoulliSelection",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "GroupedHistory",
    "Laplace",
    "Mechanism",
    "PldAccountant",
    "PoissonSampledGaussian",
    "PureDP",
    "RdpAccountant",
    "Selection",
    "accountant_named",
    "campaign_delta",
    "campaign_epsilon",
    "mechanism_from_json",
    "noise_multiplier_for",
    "renyi_curve",
    "sampling_probability_for",
    "steps_for",
]
