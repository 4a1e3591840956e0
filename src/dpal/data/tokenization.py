"""Texts become token numbers, with the tokenizer of the model that will read them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.data.pool import Pool
from dpal.data.records import ArrayRecords, TextRecords
from dpal.errors import BadData, InvalidArgument, MissingData
from dpal.imports import optional

_CHUNK = 4096


def tokenized(pool: Pool, *, model: str | Path, max_length: int = 128) -> Pool:
    """The pool with texts as token numbers, cut or padded to max_length. `model` is a folder or a name on the hub.

    The length is fixed: that of the longest text of a batch would reveal something about it.
    """
    if not isinstance(pool.records, TextRecords):
        raise BadData(f"The records of the pool {pool.name} are not texts, so they cannot be tokenized.")
    library = optional("transformers", extra="text")
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(str(model), trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise MissingData(
            f"There is no tokenizer for {str(model)!r}. Give a name on the Hugging Face hub, or a folder with the "
            "model's files."
        ) from error
    texts = pool.records.texts
    # If not even the separators fit, the library exceeds the length that was asked for.
    least = tokenizer.num_special_tokens_to_add(pair=len(texts[0]) == 2) + len(texts[0])
    if not least <= max_length <= tokenizer.model_max_length:
        raise InvalidArgument(
            "max_length", max_length, f"from {least} to {tokenizer.model_max_length} for {str(model)!r}"
        )
    if tokenizer.pad_token is None:
        raise InvalidArgument("model", str(model), "one whose tokenizer has a padding token")
    arrays: dict[str, list[NDArray[np.int32]]] = {}
    for start in range(0, len(texts), _CHUNK):
        columns = [list(column) for column in zip(*texts[start : start + _CHUNK], strict=True)]
        if len(columns) > 2:
            raise BadData(f"Each record has {len(columns)} texts. Tokenizers take one text or a pair.")
        tokens = tokenizer(*columns, padding="max_length", truncation=True, max_length=max_length, return_tensors="np")
        for name, numbers in tokens.items():
            arrays.setdefault(str(name), []).append(np.asarray(numbers).astype(np.int32))
    return replace(pool, records=ArrayRecords({name: np.concatenate(chunks) for name, chunks in arrays.items()}))
