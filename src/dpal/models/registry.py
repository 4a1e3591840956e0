"""Models by name, and any other by its import path."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from dpal.errors import DpalError, InvalidArgument
from dpal.imports import named
from dpal.models.equivariant import EquivariantResNet9
from dpal.models.features import feature_head
from dpal.models.fine_tuned import FineTuned
from dpal.models.nfnet import NFNetF0
from dpal.models.resnet9 import ResNet9
from dpal.models.small_cnn import SmallCNN
from dpal.models.text import TextClassifier

MODELS: dict[str, Callable[..., nn.Module]] = {
    "small-cnn": SmallCNN,
    "resnet9": ResNet9,
    "eq-resnet9": EquivariantResNet9,
    "nfnet-f0": NFNetF0,
    "text-classifier": TextClassifier,
    "features": feature_head,
    "fine-tuned": FineTuned,
}


def maker_of(name: str) -> Callable[..., Any]:
    """The function or class that makes the model."""
    return named("model", name, MODELS)


def build_model(name: str, options: Mapping[str, Any] | None = None, *, seed: int | None = None) -> nn.Module:
    """A model by its name here, or by an import path "package.module:function" that returns a torch module.

    A seed makes the first weights repeat; torch's own generator is left as it was.
    """
    if seed is not None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return build_model(name, options)
    maker = maker_of(name)
    try:
        model = maker(**(options or {}))
    except TypeError as error:
        # A wrong option is the user's mistake. A TypeError from deeper inside must not be hidden.
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        raise InvalidArgument(f"the options of the model {name}", dict(options or {}), f"its own: {error}") from error
    if not isinstance(model, nn.Module):
        raise DpalError(f"{name} returned a {type(model).__name__} instead of a torch module.")
    return model
