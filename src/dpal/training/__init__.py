"""DP-SGD: trains one phase of a plan on labelled records. It never sees ε.

Read in this order: `settings` (every setting, once), `loop` (one phase from top to bottom), `sampling` and `noise` (the
two places where chance enters), `units` (people with several records), `sources` (records on the device), `learner`
(what a campaign asks of training), then `engines` (how gradients are clipped by record or unit, fast). `augmentation`,
`averaging`, `checkpoints`, `losses`, `optimizers`, `phase_snapshot` (a phase in its middle), `precision`, `prediction`
and `progress` each do what their name says; `noise_kernel` is `noise` on a GPU.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpal.imports import missing_package
from dpal.training.settings import Augmentation, ComputeSettings, Scaling, TrainingSettings

if TYPE_CHECKING:
    from dpal.training.averaging import WeightAverage
    from dpal.training.checkpoints import load_weights, save_weights
    from dpal.training.engines.engine_choice import engine_for
    from dpal.training.learner import Learner
    from dpal.training.loop import PhaseResult, train_phase
    from dpal.training.losses import binary_cross_entropy, cross_entropy, loss_for
    from dpal.training.optimizers import make_optimizer
    from dpal.training.prediction import logits
    from dpal.training.sampling import BLANK
    from dpal.training.sources import StreamingSource, TensorSource, source_for

# Imported when first asked for: settings alone, as a configuration needs them, must not wait for torch.
_MODULE_OF = {
    "BLANK": "sampling",
    "Learner": "learner",
    "PhaseResult": "loop",
    "StreamingSource": "sources",
    "TensorSource": "sources",
    "WeightAverage": "averaging",
    "binary_cross_entropy": "losses",
    "cross_entropy": "losses",
    "engine_for": "engines.engine_choice",
    "load_weights": "checkpoints",
    "logits": "prediction",
    "loss_for": "losses",
    "make_optimizer": "optimizers",
    "save_weights": "checkpoints",
    "source_for": "sources",
    "train_phase": "loop",
}


def __getattr__(name: str) -> Any:
    """The public names that need torch."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dpal.training' has no attribute {name!r}")
    try:
        module = import_module(f"dpal.training.{_MODULE_OF[name]}")
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from error
    return getattr(module, name)


__all__ = [
    "BLANK",
    "Augmentation",
    "ComputeSettings",
    "Learner",
    "PhaseResult",
    "Scaling",
    "StreamingSource",
    "TensorSource",
    "TrainingSettings",
    "WeightAverage",
    "binary_cross_entropy",
    "cross_entropy",
    "engine_for",
    "load_weights",
    "logits",
    "loss_for",
    "make_optimizer",
    "save_weights",
    "source_for",
    "train_phase",
]
