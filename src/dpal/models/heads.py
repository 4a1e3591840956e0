"""A classifier for features of a frozen encoder: the only part of such a model that trains."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dpal.errors import InvalidArgument

# Of every row in the end. From 5 to 20 all are alike, with the learning rate in proportion (docs/encoders.md).
_NORM = 10.0
_SMALLEST_NORM = 1e-6


class FeatureHead(nn.Module):
    """One linear layer, or two with `hidden` units between them, on rows that are centred and of one norm.

    Each block of a row, such as a stage of the network, is scaled to one norm by the record's own values; the mean of
    the pool's rows, which is released privately, is subtracted; and each block is scaled to one norm again.
    """

    # What the optimiser uses unless the settings say otherwise.
    default_learning_rate = 0.01
    centre: Tensor

    def __init__(self, blocks: Sequence[int], classes: int, hidden: int = 0) -> None:
        super().__init__()
        for name, value, least in (
            ("classes", classes, 1),
            ("hidden", hidden, 0),
            ("blocks", min(blocks, default=0), 1),
        ):
            if value < least:
                raise InvalidArgument(name, value, f"at least {least}")
        self.blocks, width = tuple(blocks), sum(blocks)
        self.register_buffer("centre", torch.zeros(width))
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.Mish()) if hidden else nn.Identity()
        self.output = nn.Linear(hidden or width, classes)
        # No class is preferred before anything is learned.
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(self.hidden(self.normalised(features)))

    def normalised(self, features: Tensor) -> Tensor:
        """Rows of one norm, whatever a record holds: its gradient cannot be far from others'."""
        return _NORM * self._in_proportion(self.before_centre(features) - self.centre)

    def before_centre(self, rows: Tensor) -> Tensor:
        """Rows with a norm of 1, from which the mean is subtracted. A record's own values decide, and nobody else's."""
        return self._in_proportion(rows)

    def _in_proportion(self, rows: Tensor) -> Tensor:
        """Each block of a row with a norm in proportion to the root of its width; a row has a norm of 1."""
        width = sum(self.blocks)
        blocks = rows.split(self.blocks, dim=1)
        shares = [(size / width) ** 0.5 for size in self.blocks]
        scaled = [
            block * (share / block.norm(dim=1, keepdim=True).clamp(min=_SMALLEST_NORM))
            for block, share in zip(blocks, shares, strict=True)
        ]
        return torch.cat(scaled, dim=1)
