"""Pure mathematics: what was done to a record, and the (ε, δ) that follows. No data, no torch.

Read mechanisms (what touches data), history (how often), then renyi (curves), composition and pld (loss
distributions), the campaign_* files (a whole campaign with selections), accountants, calibration (from a target ε to
noise); and for several records of one person group_privacy (from ε and δ alone), mixture_of_gaussians (a step) and
several_records (a whole campaign).
"""

from dpal.privacy.accountants import ACCOUNTANTS, Accountant, PldAccountant, RdpAccountant, accountant_named
from dpal.privacy.calibration import noise_multiplier_for, sampling_probability_for, steps_for
from dpal.privacy.campaign_accounting import ACCOUNTINGS, campaign_delta, campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, Released, pure_epsilon
from dpal.privacy.group_privacy import group_delta, record_delta
from dpal.privacy.history import History, canonical
from dpal.privacy.mechanisms import (
    MECHANISMS,
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
from dpal.privacy.rounding import rounded_up
from dpal.privacy.several_records import (
    PhasedCampaign,
    SeveralRecordsEpsilon,
    TrainingPhase,
    several_records_delta,
    several_records_epsilon,
)

__all__ = [
    "ACCOUNTANTS",
    "ACCOUNTINGS",
    "MECHANISMS",
    "Accountant",
    "BernoulliSelection",
    "CampaignHistory",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "History",
    "Laplace",
    "Mechanism",
    "PhasedCampaign",
    "PldAccountant",
    "PoissonSampledGaussian",
    "PureDP",
    "RdpAccountant",
    "Released",
    "SeveralRecordsEpsilon",
    "TrainingPhase",
    "accountant_named",
    "campaign_delta",
    "campaign_epsilon",
    "canonical",
    "group_delta",
    "mechanism_from_json",
    "noise_multiplier_for",
    "pure_epsilon",
    "record_delta",
    "rounded_up",
    "sampling_probability_for",
    "several_records_delta",
    "several_records_epsilon",
    "steps_for",
]
