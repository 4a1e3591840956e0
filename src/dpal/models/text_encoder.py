"""Any text model of the library transformers as a frozen encoder: means over the text of two of its layers."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpal.errors import BadData, InvalidArgument, MissingData
from dpal.imports import optional
from dpal.models.encoder import TEXTS, Encoder, require_positive, weights_sha256

LENGTH = 128
_MOST_TEXTS = 2


class TextEncoder(Encoder):
    """Texts, or pairs of texts that are read as one, become the means over their tokens of two layers.

    The last layer tells what a text is about, and the one two thirds up more of how it is said (docs/encoders.md).
    """

    reads = TEXTS

    def __init__(self, model: str | Path, *, name: str, max_length: int | None = None) -> None:
        """`model` is a folder or a name on the hub; longer texts are cut off after `max_length` tokens."""
        self.name = name
        network, self.tokenizer = _pretrained(str(model))
        self.network = network.requires_grad_(False)
        self.max_length = require_positive("max_length", LENGTH if max_length is None else max_length, 8)
        most = min(self.tokenizer.model_max_length, getattr(network.config, "max_position_embeddings", 1 << 30))
        if self.max_length > most:
            raise InvalidArgument("max_length", self.max_length, f"at most {most}, the model's own")
        last = int(network.config.num_hidden_layers)
        self.layers = (last, round(2 * last / 3)) if last > 1 else (last,)
        self.blocks = (int(network.config.hidden_size),) * len(self.layers)
        self.weights, self.sha256 = Path(model).name, weights_sha256(self.network)
        self.trained_on = "texts that its own card names"
        self.licence = "see its own card"

    def _records(self, batch: Any) -> Sequence[dict[str, list[int]]]:
        texts = list(batch)
        if not all(isinstance(record, tuple) and 1 <= len(record) <= _MOST_TEXTS for record in texts):
            raise BadData(f"The encoder {self.name} reads texts, or pairs of texts.")
        columns = [list(column) for column in zip(*texts, strict=True)]
        # Not in several threads: the library's tokenizers allow one user at a time.
        tokens = self.tokenizer(*columns, truncation=True, max_length=self.max_length)
        names = [name for name in self.tokenizer.model_input_names if name in tokens]
        return [{name: tokens[name][row] for name in names} for row in range(len(texts))]

    def _features(self, records: Sequence[dict[str, list[int]]]) -> Tensor:
        if len(records) == 1:
            batch = {name: torch.tensor([numbers], device=self.device) for name, numbers in records[0].items()}
        else:
            # To a fixed length: that of the longest would depend on the other texts.
            padded = self.tokenizer.pad(list(records), padding="max_length", max_length=self.max_length)
            batch = {name: torch.tensor(numbers, device=self.device) for name, numbers in padded.items()}
        # What the first layer reads, then what each layer returns.
        states = self.network(**batch, output_hidden_states=True).hidden_states
        default = torch.ones(states[0].shape[:2], device=self.device)
        shown = batch.get("attention_mask", default)[..., None].to(states[0].dtype)
        return torch.cat([(states[layer] * shown).sum(1) / shown.sum(1).clamp(min=1) for layer in self.layers], dim=1)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "max_length": self.max_length,
            "pooling": f"mean over the tokens, of the layers {', '.join(map(str, self.layers))}",
            "tokenizer": self._words(),
        }

    def _words(self) -> str:
        """The hash of the tokenizer's words and their numbers."""
        words = sorted(self.tokenizer.get_vocab().items())
        return hashlib.sha256(repr(words).encode()).hexdigest()


def _pretrained(model: str) -> tuple[Any, Any]:
    library = optional("transformers", extra="text")
    before = library.logging.get_verbosity()
    # It would warn that the layers after the last one are not used, which is intended.
    library.logging.set_verbosity_error()
    bars = library.logging.is_progress_bar_enabled()
    library.logging.disable_progress_bar()
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(model, trust_remote_code=False)
        return library.AutoModel.from_pretrained(model, trust_remote_code=False, use_safetensors=True), tokenizer
    except (OSError, ValueError) as error:
        raise MissingData(
            f"There is no text model {model!r} with its tokenizer and weights in safetensors format. Give a name on "
            "the Hugging Face hub, or a folder with its files."
        ) from error
    finally:
        library.logging.set_verbosity(before)
        if bars:
            library.logging.enable_progress_bar()
