"""A pretrained text model of which the end trains."""

from pathlib import Path

import numpy as np
import pytest
import torch
from networks import plain_loop
from small_pools import TEXTS, text_pool
from tiny_bert import write_tiny_bert

from dpal.data import tokenized
from dpal.errors import BadData, InvalidArgument, MissingData
from dpal.models.text import TextClassifier
from dpal.training.engines.engine_choice import engine_for
from dpal.training.losses import cross_entropy
from dpal.training.prediction import logits
from dpal.training.sources import source_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bert(tmp_path_factory.mktemp("bert"))


def test_only_the_end_trains(folder: Path) -> None:
    model = TextClassifier(name=folder, classes=3)
    trained = {name for name, each in model.named_parameters() if each.requires_grad}
    end = ("encoder.bert.encoder.layer.2.", "encoder.bert.pooler.", "encoder.classifier.")
    assert all(name.startswith(end) for name in trained)
    layer = 4 * (16 * 16 + 16) + 2 * 32 + (16 * 24 + 24) + (24 * 16 + 16)
    assert sum(each.numel() for each in model.parameters() if each.requires_grad) == layer + 16 * 16 + 16 + 3 * 16 + 3


def test_it_trains_with_the_fused_engine(folder: Path) -> None:
    pool = tokenized(text_pool(TEXTS), model=folder, max_length=8)
    assert pool.labels is not None
    batch, targets = source_for(pool.records, pool.labels, device="cpu").batch(np.arange(6))
    model = TextClassifier(name=folder, classes=3, dropout=0.0)
    engine = engine_for(model, cross_entropy, max_grad_norm=0.1, sample=(batch, targets))
    assert engine.name == "fused"
    found = engine.clipped_sum(batch, targets).gradients
    model.eval()
    _, expected = plain_loop(model, batch, targets, 0.1)
    assert set(found) == set(expected)
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient.double(), atol=1e-6), name


def test_monte_carlo_dropout_differs_between_passes(folder: Path) -> None:
    pool = tokenized(text_pool(TEXTS), model=folder, max_length=8)
    assert pool.labels is not None
    source = source_for(pool.records, pool.labels, device="cpu")
    model = TextClassifier(name=folder, classes=3, dropout=0.3)
    found = logits(model, source, np.arange(6), batch_size=4, passes=5)
    assert found.shape == (5, 6, 3)
    assert (found.std(axis=0) > 0).all()
    plain = logits(model, source, np.arange(6), batch_size=4)
    assert np.allclose(plain, logits(model, source, np.arange(6), batch_size=6), atol=1e-6)
    with pytest.raises(InvalidArgument, match="dropout above 0"):
        logits(TextClassifier(name=folder, classes=3, dropout=0.0), source, np.arange(6), passes=5)


def test_wrong_names_are_clear(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(MissingData, match="no text model"):
        TextClassifier(name=tmp_path / "nothing", classes=3)
    with pytest.raises(MissingData, match="no tokenizer"):
        tokenized(text_pool(TEXTS), model=tmp_path / "nothing")
    with pytest.raises(BadData, match="texts"):
        tokenized(tokenized(text_pool(TEXTS), model=folder), model=folder)
    with pytest.raises(BadData, match="tokenized"):
        text_pool(TEXTS).records.read(np.arange(1))
