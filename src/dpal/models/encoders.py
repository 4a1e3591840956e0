"""Encoders by name; any other by an import path, as a torch module, or by its name in the library transformers."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpal.errors import DpalError, InvalidArgument, MixesRecords
from dpal.imports import import_path, named
from dpal.models.efficientnet_lite import EfficientNetLite0, EfficientNetLite1, EfficientNetLite2
from dpal.models.encoder import IMAGES, TEXTS, Encoder, ImageEncoder, require_positive, weights_sha256
from dpal.models.minilm import MiniLM
from dpal.models.text_encoder import TextEncoder

ENCODERS: dict[str, type[Encoder]] = {
    "efficientnet-lite0": EfficientNetLite0,
    "efficientnet-lite1": EfficientNetLite1,
    "efficientnet-lite2": EfficientNetLite2,
    "minilm": MiniLM,
}
# For records of a kind, where none is named.
DEFAULT_ENCODERS = {IMAGES: "efficientnet-lite0", TEXTS: "minilm"}
TRANSFORMERS = "transformers:"
_SIDE = 224
_CLOSE = 1e-3


def encoder_named(name: str, **options: Any) -> Encoder:
    """An encoder by its name here, by "transformers:NAME_OR_FOLDER", or by an import path "package.module:Class".

    The class may be an encoder or a torch module that reads images (`as_encoder`). Options are the encoder's own:
    `side` for images, `max_length` for texts.
    """
    try:
        if isinstance(name, str) and name.startswith(TRANSFORMERS):  # pyright: ignore[reportUnnecessaryIsInstance]
            model = name.removeprefix(TRANSFORMERS)
            # Of a folder only the last part: the name is shown to others.
            shown = Path(model).name if Path(model).is_dir() else model
            return TextEncoder(model, name=f"{TRANSFORMERS}{shown}", **options)
        made = named("encoder", name, ENCODERS)
        if isinstance(made, type) and issubclass(made, Encoder):  # pyright: ignore[reportUnnecessaryIsInstance]
            return made(**options)
        return as_encoder(made(), name=name, **options)
    except TypeError as error:
        raise InvalidArgument(f"the options of the encoder {name}", options, f"its own: {error}") from error


def as_encoder(given: object, **options: Any) -> Encoder:
    """An encoder as it is, one by its name, or any torch module that reads images.

    A module gets (records, 3, side, side) with values from 0 to 1 and returns (records, width), or (records, channels,
    height, width), which is averaged over the image. It may say its `side`, `trained_on` and `licence`.
    """
    if isinstance(given, Encoder):
        return given
    if isinstance(given, str):
        return encoder_named(given, **options)
    if isinstance(given, nn.Module):
        return ModuleEncoder(given, **options)
    names = f"one of {', '.join(ENCODERS)}, an import path, {TRANSFORMERS}NAME, an Encoder or a torch module"
    raise InvalidArgument("encoder", given, names)


class ModuleEncoder(ImageEncoder):
    """Any torch module that reads images. It is tried on synthetic images first: each row must be its image's own."""

    pixel_mean = (0.0, 0.0, 0.0)
    pixel_deviation = (255.0, 255.0, 255.0)

    def __init__(self, module: nn.Module, *, name: str | None = None, side: int | None = None) -> None:
        self.name = import_path(module) if name is None else name
        self.network = module.requires_grad_(False).eval()
        self.side = require_positive("side", getattr(module, "side", _SIDE) if side is None else side)
        self.trained_on = str(getattr(module, "trained_on", "data that its author did not name"))
        self.licence = str(getattr(module, "licence", "not stated"))
        self.weights, self.sha256 = import_path(module), weights_sha256(module)
        self.blocks = (self._checked_width(),)

    def code(self) -> tuple[str, ...]:
        return (import_path(self.network),)

    def _features(self, records: Any) -> Tensor:
        rows = self.network(torch.cat([self.prepared(image) for image in records]))
        if not isinstance(rows, Tensor) or rows.ndim not in (2, 4):
            shape = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
            raise DpalError(f"The encoder {self.name} returned {shape} instead of one row of numbers per image.")
        return rows if rows.ndim == 2 else rows.mean((2, 3))

    @torch.inference_mode()
    def _checked_width(self) -> int:
        images = list(np.random.default_rng(0).integers(0, 256, (3, 3, self.side, self.side), dtype=np.uint8))
        together = self._features(images)
        alone = torch.cat([self._features([image]) for image in images])
        # A running mean may move others' rows by less than rounding does here, and by more over a whole pool.
        again = torch.cat([self._features([image]) for image in images[::-1]]).flip(0)
        keeps_nothing = weights_sha256(self.network) == self.sha256 and (
            again.device.type != "cpu" or torch.equal(again.nan_to_num(), alone.nan_to_num())
        )
        if (
            together.shape != alone.shape
            or not torch.allclose(together, alone, rtol=_CLOSE, atol=_CLOSE)
            or not keeps_nothing
        ):
            raise MixesRecords(
                f"The encoder {self.name} gives an image another row next to other images: some layer mixes records, "
                "or it keeps something from earlier ones. Nothing was charged."
            )
        return together.shape[1]
