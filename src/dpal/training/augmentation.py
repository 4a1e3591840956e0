"""Augmented copies of images, by flips and crops. A record's copies are averaged before clipping, at no cost in ε."""

import torch
from torch import Tensor
from torch.nn import functional

from dpal.training.settings import Augmentation


def augmented(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """(records · copies, …): the copies of a record lie one after the other."""
    copies = images.repeat_interleave(augmentation.copies, dim=0) if augmentation.copies > 1 else images
    if augmentation.flip:
        flipped = torch.rand(len(copies), generator=generator, device=copies.device) < 0.5
        copies = torch.where(flipped.reshape(-1, 1, 1, 1), copies.flip(-1), copies)
    return _cropped(copies, augmentation.crop, generator) if augmentation.crop else copies


def _cropped(images: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Each image shifted by up to `most` pixels in both directions."""
    count, _, height, width = images.shape
    padded = functional.pad(images, (most,) * 4, mode="reflect")
    shifts = torch.randint(0, 2 * most + 1, (2, count), generator=generator, device=images.device)
    ys = shifts[0][:, None] + torch.arange(height, device=images.device)
    xs = shifts[1][:, None] + torch.arange(width, device=images.device)
    record = torch.arange(count, device=images.device)[:, None, None]
    # Indices around the channels' slice put them last.
    return padded[record, :, ys[:, :, None], xs[:, None, :]].permute(0, 3, 1, 2)
