"""Texts become token numbers of one length."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small_pools import TEXTS, text_pool
from tiny_bert import write_tiny_bert

from dpal.data import tokenized
from dpal.errors import InvalidArgument


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bert(tmp_path_factory.mktemp("bert"))


def test_texts_are_cut_and_filled_to_one_length(folder: Path) -> None:
    pool = tokenized(text_pool(TEXTS), model=folder, max_length=5)
    read = pool.records.read(np.arange(3))
    assert isinstance(read, dict)
    assert read["input_ids"].tolist() == [[2, 8, 9, 10, 3], [2, 7, 5, 3, 0], [2, 6, 12, 6, 3]]
    assert read["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_pairs_are_told_apart(folder: Path) -> None:
    pool = tokenized(text_pool([("a man runs", "man sleeps")]), model=folder, max_length=10)
    read = pool.records.read(np.arange(1))
    assert isinstance(read, dict)
    assert read["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 0, 0]]


def test_a_length_that_cannot_be_kept_is_refused(folder: Path, tmp_path: Path) -> None:
    # [CLS] a [SEP] b [SEP]
    pairs = text_pool([("a man runs", "man sleeps")])
    read = tokenized(pairs, model=folder, max_length=5).records.read(np.arange(1))
    assert isinstance(read, dict)
    assert read["input_ids"].shape == (1, 5)
    with pytest.raises(InvalidArgument, match="from 5 to"):
        tokenized(pairs, model=folder, max_length=4)
    copied = tmp_path / "limited"
    shutil.copytree(folder, copied)
    settings = json.loads((copied / "tokenizer_config.json").read_text())
    for changes, message in (({"model_max_length": 32}, "to 32"), ({"pad_token": None}, "has a padding token")):
        (copied / "tokenizer_config.json").write_text(json.dumps(settings | changes))
        with pytest.raises(InvalidArgument, match=message):
            tokenized(pairs, model=copied, max_length=33)
