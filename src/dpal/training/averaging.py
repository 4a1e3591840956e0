"""An exponential moving average of the weights: post-processing of private steps, so it costs nothing."""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dpal.errors import InvalidArgument


class WeightAverage:
    """Averages the trainable parameters. The decay grows from 2/11, so that the first weights are soon forgotten."""

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        if not 0 <= decay < 1:
            raise InvalidArgument("the decay of the average", decay, "a number from 0 and below 1")
        self.model, self.decay, self.steps = model, decay, 0
        self.average = {name: each.detach().clone() for name, each in self._trained()}

    def _trained(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, each) for name, each in self.model.named_parameters() if each.requires_grad]

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights after a step into the average."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for name, parameter in self._trained():
            self.average[name].lerp_(parameter, 1 - decay)

    @contextmanager
    def applied(self) -> Generator[None]:
        """Inside, the model has the average's weights."""
        kept = {name: each.detach().clone() for name, each in self._trained()}
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
        """The average and its age, for checkpoints."""
        return {**self.average, "steps": torch.tensor(self.steps)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.steps = int(state["steps"])
        for name, value in self.average.items():
            value.copy_(state[name])
