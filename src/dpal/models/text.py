"""A BERT-style classifier from transformers. Only its last layers train, as in the paper."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dpal.errors import DpalError, InvalidArgument, MissingData
from dpal.imports import optional


class TextClassifier(nn.Module):
    """A pretrained encoder with a new classifier. The last encoder layer, the pooler and the classifier train.

    `name` is a folder or a name on the hub. `dropout` replaces the model's own rate; BALD needs it above 0.
    """

    # Pretrained weights must not move as far as those of a network from scratch.
    default_learning_rate = 1e-3

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
        for module in trained_modules(self.encoder).values():
            for parameter in module.parameters():
                parameter.requires_grad_(True)

    def forward(self, **batch: Tensor) -> Tensor:
        return self.encoder(**_as_indices(batch)).logits


def _as_indices(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Token numbers are stored in 32 bits; masks need 64."""
    return {name: array if array.is_floating_point() else array.long() for name, array in batch.items()}


def trained_modules(encoder: Any) -> dict[str, nn.Module]:
    """The last layer of the longest stack, the pooler if there is one, and whatever comes after the base model."""
    base = encoder.base_model
    stacks = {name: own for name, own in base.named_modules() if isinstance(own, nn.ModuleList) and len(own) > 1}
    if not stacks:
        raise DpalError(f"The text model {type(encoder).__name__} has no stack of encoder layers.")
    longest = max(stacks, key=lambda name: len(stacks[name]))
    trained: dict[str, nn.Module] = {f"{longest}.last": stacks[longest][-1]}
    trained |= {name: module for name, module in base.named_modules() if name.endswith("pooler")}
    trained |= {name: module for name, module in encoder.named_children() if module is not base}
    return trained


def _pretrained(name: str, classes: int) -> Any:
    transformers = optional("transformers", extra="text")
    before = transformers.logging.get_verbosity()
    # It would warn that the classifier is new, which is intended.
    transformers.logging.set_verbosity_error()
    try:
        # Plain attention, made of layers and products that every engine supports.
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            name, num_labels=classes, attn_implementation="eager", trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        raise MissingData(
            f"There is no text model {name!r}. Give a name on the Hugging Face hub, or a folder with its files."
        ) from error
    finally:
        transformers.logging.set_verbosity(before)
