"""DP-SGD: clipping engines, Poisson sampling by group, noise, and the loop that runs one phase. It never sees ε."""

from dpal.training.augmentation import Augmentation
from dpal.training.averaging import WeightAverage
from dpal.training.engines.engine_choice import engine_for
from dpal.training.learner import Learner, LearnerSettings
from dpal.training.loop import PhaseResult, TrainingSettings, train_phase
from dpal.training.losses import binary_cross_entropy, cross_entropy
from dpal.training.optimizers import make_optimizer
from dpal.training.sources import Scaling, StreamingSource, TensorSource, source_for

__all__ = [
    "Augmentation",
    "Learner",
    "LearnerSettings",
    "PhaseResult",
    "Scaling",
    "StreamingSource",
    "TensorSource",
    "TrainingSettings",
    "WeightAverage",
    "binary_cross_entropy",
    "cross_entropy",
    "engine_for",
    "make_optimizer",
    "source_for",
    "train_phase",
]
