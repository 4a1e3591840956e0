"""Augmented copies of images, by flips and crops. A record's copies are averaged before clipping, at no cost in ε."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dpal.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """How many copies of each record a step sees, and what may be done to each."""

    copies: int = 1
    flip: bool = False
    # Pixels by which a crop may be shifted; the border is filled by reflection.
    crop: int = 0

    def __post_init__(self) -> None:
        if self.copies < 1:
            raise InvalidArgument("copies", self.copies, "at least 1")
        if self.crop < 0:
            raise InvalidArgument("crop", self.crop, "at least 0")

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """(records · copies, …): a record's copies lie one after the other."""
        copies = images.repeat_interleave(self.copies, dim=0) if self.copies > 1 else images
        if self.flip:
            flipped = torch.rand(len(copies), generator=generator, device=copies.device) < 0.5
            copies = torch.where(flipped.reshape(-1, 1, 1, 1), copies.flip(-1), copies)
        return self._cropped(copies, generator) if self.crop else copies

    def _cropped(self, images: Tensor, generator: torch.Generator) -> Tensor:
        count, _, height, width = images.shape
        padded = functional.pad(images, (self.crop,) * 4, mode="reflect")
        shifts = torch.randint(0, 2 * self.crop + 1, (2, count), generator=generator, device=images.device)
        ys = shifts[0][:, None] + torch.arange(height, device=images.device)
        xs = shifts[1][:, None] + torch.arange(width, device=images.device)
        record = torch.arange(count, device=images.device)[:, None, None]
        # Indices around the channels' slice put them last.
        return padded[record, :, ys[:, :, None], xs[:, None, :]].permute(0, 3, 1, 2)
