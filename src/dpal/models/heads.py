"""A classifier for features of a frozen encoder: the only part of such a model that trains."""

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.errors import InvalidArgument

# Of every row, once it is centred and scaled.
_NORM = 4.0
# Numbers beyond this many deviations are cut off.
_LARGEST = 5.0
_SMALLEST_NORM = 1e-6


class FeatureHead(nn.Module):
    """One linear layer, or two with `hidden` units between them, on rows that are centred, scaled and of one norm.

    `centre` and `scale` are public constants. Each block of a row is scaled to a norm of 1 by the record's own values.
    """

    centre: Tensor
    scale: Tensor

    def __init__(
        self,
        blocks: Sequence[int],
        classes: int,
        hidden: int = 0,
        *,
        centre: NDArray[np.float32] | None = None,
        scale: NDArray[np.float32] | None = None,
    ) -> None:
        super().__init__()
        for name, value, least in (
            ("classes", classes, 1),
            ("hidden", hidden, 0),
            ("blocks", min(blocks, default=0), 1),
        ):
            if value < least:
                raise InvalidArgument(name, value, f"at least {least}")
        self.blocks = tuple(blocks)
        width = sum(self.blocks)
        for name, values, default in (("centre", centre, 0.0), ("scale", scale, 1.0)):
            given = torch.full((width,), default) if values is None else torch.tensor(values, dtype=torch.float32)
            usable = torch.isfinite(given).all() and (name == "centre" or bool((given > 0).all()))
            if tuple(given.shape) != (width,) or not usable:
                above = "" if name == "centre" else " above 0"
                raise InvalidArgument(name, tuple(given.shape), f"{width} finite numbers{above}, one per feature")
            self.register_buffer(name, given)
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.Mish()) if hidden else nn.Identity()
        self.output = nn.Linear(hidden or width, classes)
        # No class is preferred before anything is learned.
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(self.hidden(self.normalised(features)))

    def normalised(self, features: Tensor) -> Tensor:
        """Each block of each row with the same norm, whatever a record holds: its gradient cannot be far from others'.

        A record's own values decide, so no other record is involved.
        """
        standard = ((features - self.centre) / self.scale).clamp(-_LARGEST, _LARGEST)
        edges = list(itertools.pairwise(itertools.accumulate(self.blocks, initial=0)))
        parts = [standard[:, start:end] for start, end in edges]
        scaled = [part / part.norm(dim=1, keepdim=True).clamp(min=_SMALLEST_NORM) for part in parts]
        return torch.cat(scaled, dim=1) * (_NORM / len(parts) ** 0.5)
