"""An exponential moving average of the weights: post-processing of private steps, so it costs no privacy."""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dpal.errors import InvalidArgument


class WeightAverage:
    """Averages the trainable parameters. The decay grows from 2/11, so that the first weights are soon forgotten."""

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        if not 0 <= decay < 1:
            raise InvalidArgument("decay", decay, "at least 0 and below 1")
        self.model, self.decay, self.steps = model, decay, 0
        self.average = {name: parameter.detach().clone() for name, parameter in self._trained()}

    def _trained(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, parameter) for name, parameter in self.model.named_parameters() if parameter.requires_grad]

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights after a step into the average."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for name, parameter in self._trained():
            self.average[name].lerp_(parameter, 1 - decay)

    @contextmanager
    def applied(self) -> Generator[None]:
        """Inside, the model has the averaged weights."""
        kept = {name: parameter.detach().clone() for name, parameter in self._trained()}
        self._set(self.average)
        try:
            yield
        finally:
            self._set(kept)

    @torch.no_grad()
    def _set(self, values: dict[str, Tensor]) -> None:
        for name, parameter in self._trained():
            parameter.copy_(values[name])

    def state_dict(self) -> dict[str, Tensor]:
        """The average and its number of steps, for checkpoints."""
        return {**self.average, "steps": torch.tensor(self.steps)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.steps = int(state["steps"])
        for name, value in self.average.items():
            value.copy_(state[name])
