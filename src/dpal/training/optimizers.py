"""The paper's optimizers by name. They only see noisy gradients, so they cost no privacy."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from dpal.errors import InvalidArgument
from dpal.training.settings import TrainingSettings

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "nadam": torch.optim.NAdam,
    "sgd": torch.optim.SGD,
    "adamw": torch.optim.AdamW,
}
SGD_AGC = "sgd-agc"


class SgdWithAdaptiveClipping(torch.optim.SGD):
    """SGD in which the gradient of a unit is at most `clipping` times the norm of its weights (arXiv:2102.06171)."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        exempt: Iterable[nn.Parameter] = (),
        clipping: float = 0.01,
        smallest_norm: float = 1e-3,
        **options: Any,
    ) -> None:
        super().__init__(parameters, **options)
        self.clipping, self.smallest_norm = clipping, smallest_norm
        self.exempt = set(exempt)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter not in self.exempt:
                    allowed = self.clipping * _unit_norms(parameter).clamp(min=self.smallest_norm)
                    norms = _unit_norms(parameter.grad)
                    parameter.grad.mul_(torch.where(norms > allowed, allowed / norms.clamp(min=1e-6), 1.0))
        return super().step(closure)


def _unit_norms(tensor: torch.Tensor) -> torch.Tensor:
    """One norm for each output unit, shaped to broadcast; a vector or scalar is one unit."""
    if tensor.ndim <= 1:
        return tensor.norm()
    # Not tensor.norm, which takes two dimensions at most: filters have three.
    return torch.linalg.vector_norm(tensor, dim=tuple(range(1, tensor.ndim)), keepdim=True)


def make_optimizer(
    name: str, model: nn.Module, *, learning_rate: float, exempt_layer: nn.Module | None = None, **options: float
) -> torch.optim.Optimizer:
    """An optimizer over the parameters that train. `exempt_layer` (a classifier) is exempt from adaptive clipping."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if name == SGD_AGC:
        exempt = () if exempt_layer is None else exempt_layer.parameters()
        return SgdWithAdaptiveClipping(parameters, exempt=exempt, lr=learning_rate, **options)
    if name not in OPTIMIZERS:
        raise InvalidArgument("optimizer", name, f"one of {', '.join((*OPTIMIZERS, SGD_AGC))}")
    return OPTIMIZERS[name](parameters, lr=learning_rate, **options)


def optimizer_for(settings: TrainingSettings, model: nn.Module, *, steps: int) -> torch.optim.Optimizer:
    """The optimizer for a phase of so many steps. A layer that is named as classifiers usually are is exempt."""
    return make_optimizer(
        settings.optimizer,
        model,
        learning_rate=learning_rate_for(settings, model, steps=steps),
        exempt_layer=_classifier(model),
        **settings.optimizer_options,
    )


def learning_rate_for(settings: TrainingSettings, model: nn.Module, *, steps: int) -> float:
    """The learning rate that the settings give this model in a phase of so many steps."""
    own = getattr(model, "default_learning_rate", None)
    return settings.learning_rate_for(
        None if own is None else float(own), parameters=trainable_parameters(model), steps=steps
    )


def trainable_parameters(model: nn.Module) -> int:
    """How many numbers training changes, and noise is added to."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _classifier(model: nn.Module) -> nn.Module | None:
    """The last layer, found by its usual names."""
    for name in ("classifier", "head", "fc"):
        layer = getattr(model, name, None)
        if isinstance(layer, nn.Module):
            return layer
    return None
