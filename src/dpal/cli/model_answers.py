"""What the questions of `dpal init` propose and check about the model."""

from dpal.campaign.default_model import (
    FROM_SCRATCH,
    IMAGE_ENCODER,
    INSTALL_ENCODERS,
    TEXT_ENCODER,
    WHY_ENCODER,
    encoder_available,
    why_from_scratch,
)
from dpal.cli import data_answers
from dpal.cli.answered_config import TEXT_MODEL
from dpal.cli.questions import Answers, WrongAnswer
from dpal.data.records import TextRecords
from dpal.data.sources import SOURCES


def is_text(answers: Answers) -> bool:
    """Whether the records are texts. The kind was asked of tables only."""
    if "kind" in answers:
        return answers["kind"] == "texts"
    return answers["source"] not in SOURCES and isinstance(data_answers.pool_of(answers).records, TextRecords)


def has_stated_form(answers: Answers) -> bool:
    """Whether the size of images is asked for. Arrays and published datasets have one already."""
    return answers["source"] in SOURCES and answers["source"] != "numpy" and not is_text(answers)


def model_default(answers: Answers) -> str:
    """The public encoder, if it can be used."""
    encoder, other = _choices(answers)
    return encoder if _why_no_encoder(answers) is None else other


def proposal(answers: Answers) -> str:
    """Which model is proposed, why, and what the other one is."""
    encoder, other = _choices(answers)
    why = _why_no_encoder(answers)
    proposed = f"{encoder}, since {WHY_ENCODER[encoder]}" if why is None else f"{other}, since {why}"
    trained = "a text model whose last layers are trained" if is_text(answers) else "a network trained from scratch"
    return (
        f"Proposed model: {proposed}.\n  {encoder}: a small classifier on a frozen public encoder    {other}: {trained}"
    )


def model(typed: str, answers: Answers) -> str:
    """An encoder that can be used, a model's name, or an import path."""
    # Only here, since torch takes seconds to import and is an extra.
    from dpal.models.registry import MODELS, maker_of

    encoder, _ = _choices(answers)
    if typed == encoder:
        if why := _why_no_encoder(answers):
            raise WrongAnswer(f"{encoder} cannot be used here: {why}.")
        return typed
    known = [name for name in MODELS if name != "features" and (name == TEXT_MODEL) == is_text(answers)]
    if typed not in known and ":" not in typed:
        raise WrongAnswer(f"{typed!r} is not one of {', '.join((encoder, *known))}, or an import path.")
    maker_of(typed)
    return typed


def text_model(typed: str, answers: Answers) -> str:
    """A folder that exists, or a name on the hub."""
    return data_answers.place(typed, {"source": "hugging-face"})


def _choices(answers: Answers) -> tuple[str, str]:
    """The encoder, and the model without one."""
    return (TEXT_ENCODER, TEXT_MODEL) if is_text(answers) else (IMAGE_ENCODER, FROM_SCRATCH)


def _why_no_encoder(answers: Answers) -> str | None:
    if not is_text(answers) and not has_stated_form(answers):
        return why_from_scratch(data_answers.pool_of(answers))
    encoder, _ = _choices(answers)
    return None if encoder_available(encoder) else f"no public encoder is installed ({INSTALL_ENCODERS})"
