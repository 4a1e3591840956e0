"""A BERT-style classifier from transformers, of which only the end trains, as in the paper."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dpal.errors import InvalidArgument, MissingData, MissingPackage


class TextClassifier(nn.Module):
    """A pretrained encoder with a fresh classifier. The last encoder layer, the pooler and the classifier train.

    `name` is a folder or a name on the hub. `dropout` replaces the model's own rate; BALD needs it above 0.
    """

    def __init__(self, *, name: str | Path, classes: int, dropout: float | None = None) -> None:
        super().__init__()
        if classes < 1:
            raise InvalidArgument("classes", classes, "at least 1")
        self.encoder = _pretrained(str(name), classes)
        if dropout is not None:
            for module in self.encoder.modules():
                if isinstance(module, nn.Dropout):
                    module.p = dropout
        for parameter in self.encoder.parameters():
            parameter.requires_grad_(False)
        for part in trained_parts(self.encoder).values():
            for parameter in part.parameters():
                parameter.requires_grad_(True)

    def forward(self, **batch: Tensor) -> Tensor:
        return self.encoder(**_as_indices(batch)).logits


def _as_indices(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Token numbers are kept in 32 bits; embeddings look up either, loss masks want 64."""
    return {name: part if part.is_floating_point() else part.long() for name, part in batch.items()}


def trained_parts(encoder: Any) -> dict[str, nn.Module]:
    """The last layer of the longest stack, the pooler if there is one, and whatever comes after the base model."""
    base = encoder.base_model
    stacks = {name: each for name, each in base.named_modules() if isinstance(each, nn.ModuleList) and len(each) > 1}
    if not stacks:
        raise InvalidArgument("the text model", type(encoder).__name__, "one with a stack of encoder layers")
    longest = max(stacks, key=lambda name: len(stacks[name]))
    parts: dict[str, nn.Module] = {f"{longest}.last": stacks[longest][-1]}
    parts |= {name: each for name, each in base.named_modules() if name.endswith("pooler")}
    parts |= {name: each for name, each in encoder.named_children() if each is not base}
    return parts


def _pretrained(name: str, classes: int) -> Any:
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise MissingPackage("transformers is not installed. It comes with: pip install 'dpal[text]'.") from error
    before = transformers.logging.get_verbosity()
    # Its report warns that the classifier is new, which is meant.
    transformers.logging.set_verbosity_error()
    try:
        # Plain attention: its steps are layers and products that every engine can follow.
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            name, num_labels=classes, attn_implementation="eager", trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        raise MissingData(
            f"There is no text model {name!r}. Give a name on the Hugging Face hub, or a folder with its files."
        ) from error
    finally:
        transformers.logging.set_verbosity(before)
