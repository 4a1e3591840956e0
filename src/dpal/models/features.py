"""The model `features`: a frozen public encoder, and a head that is the only part that trains."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dpal.models.encoder import Encoder
from dpal.models.encoders import DEFAULT_ENCODERS, ENCODERS, as_encoder
from dpal.models.heads import FeatureHead

NAME = "features"
_MOST_ENLARGED = 8


@dataclass(frozen=True, kw_only=True)
class Features:
    """A head with `hidden` units (0: linear) on an encoder: its name, an encoder object, or a torch module.

    Without an encoder, the one that dpal recommends for the records. Options are the encoder's own: `side`,
    `max_length`.
    """

    encoder: str | Encoder | nn.Module | None = None
    hidden: int = 0
    side: int | None = None
    max_length: int | None = None

    def loaded_encoder(self, reads: str, *, image_side: int | None = None) -> Encoder:
        """The encoder, with its weights. `reads` says what the records are, in case none is named.

        `image_side` is the smaller side of the pool's images. Without a stated `side`, small ones are enlarged eight
        times at most: on digits of 8 × 8 pixels, 64 gives 92% where 224 gives 79% (docs/encoders.md).
        """
        options: dict[str, Any] = {"side": self.side, "max_length": self.max_length}
        given = DEFAULT_ENCODERS[reads] if self.encoder is None else self.encoder
        own_side = getattr(ENCODERS.get(given), "own_side", None) if isinstance(given, str) else None
        if self.side is None and image_side is not None and own_side is not None:
            options["side"] = min(own_side, _MOST_ENLARGED * image_side)
        return as_encoder(given, **{name: value for name, value in options.items() if value is not None})

    @staticmethod
    def of(given: object) -> "Features | None":
        """What a campaign in Python was given as its model, if that is an encoder with a head or an encoder alone."""
        if isinstance(given, Encoder):
            return Features(encoder=given)
        return given if isinstance(given, Features) else None


def head_for(encoder: Encoder, *, classes: int, hidden: int = 0) -> FeatureHead:
    """A head for this encoder's features, with the encoder's public constants."""
    return FeatureHead(encoder.blocks, classes, hidden)


def seeded_head(encoder: Encoder, *, classes: int, hidden: int, seed: int | None) -> FeatureHead:
    """A head whose first weights repeat if a seed is given; torch's own generator is left as it was then."""
    if seed is None:
        return head_for(encoder, classes=classes, hidden=hidden)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return head_for(encoder, classes=classes, hidden=hidden)


def feature_head(
    *,
    classes: int,
    encoder: str | Encoder | nn.Module,
    hidden: int = 0,
    side: int | None = None,
    max_length: int | None = None,
) -> FeatureHead:
    """The head alone, for a network of the encoder's features; the options of the model `features`."""
    wanted = Features(encoder=encoder, hidden=hidden, side=side, max_length=max_length)
    return head_for(wanted.loaded_encoder(""), classes=classes, hidden=hidden)
