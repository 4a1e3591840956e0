"""Text models of the library transformers as encoders."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_bert import write_tiny_bert

from dpal.errors import BadData, InvalidArgument, MissingData
from dpal.models.text_encoder import TextEncoder

TEXTS = [("a man runs .",), ("no fever",), ("cough . cough",)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> TextEncoder:
    return TextEncoder(write_tiny_bert(tmp_path_factory.mktemp("bert")), name="tiny", max_length=16)


def test_a_row_has_the_means_over_the_tokens_of_two_layers(encoder: TextEncoder) -> None:
    tokens = encoder.tokenizer("no fever", return_tensors="pt")
    with torch.no_grad():
        answer = encoder.network(**tokens, output_hidden_states=True)
    last, earlier = answer.last_hidden_state[0].mean(0), answer.hidden_states[encoder.layers[1]][0].mean(0)
    assert 0 < encoder.layers[1] < encoder.layers[0] == encoder.network.config.num_hidden_layers
    assert encoder.encode([("no fever",)])[0] == pytest.approx(torch.cat([last, earlier]).numpy(), abs=1e-6)


def test_a_row_does_not_change_by_a_bit_with_other_texts(encoder: TextEncoder) -> None:
    together = encoder.encode(TEXTS)
    for place, text in enumerate(TEXTS):
        assert np.array_equal(encoder.encode([text])[0], together[place])
    # On a GPU all are padded to one length, which a mean over the tokens does not see.
    assert encoder._in_batches(list(encoder._records(TEXTS))) == pytest.approx(together, abs=1e-5)


def test_pairs_are_read_as_one_text(encoder: TextEncoder) -> None:
    pair, other = encoder.encode([("a man runs .", "no fever"), ("no fever", "a man runs .")])
    assert not np.allclose(pair, other)


def test_long_texts_are_cut_off(encoder: TextEncoder) -> None:
    start = "cough " * 14
    assert np.array_equal(encoder.encode([(start,)]), encoder.encode([(start + "fever",)]))


def test_what_it_cannot_read_is_refused(encoder: TextEncoder, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="texts, or pairs of texts"):
        encoder.encode([("one", "two", "three")])
    with pytest.raises(BadData, match="texts, or pairs of texts"):
        encoder.encode(np.zeros((1, 3, 8, 8), dtype=np.uint8))
    with pytest.raises(InvalidArgument, match="max_length is 64, but must be at most 32"):
        TextEncoder(write_tiny_bert(tmp_path / "bert"), name="tiny", max_length=64)
    with pytest.raises(MissingData, match="no text model"):
        TextEncoder(tmp_path / "nothing", name="nothing")


def test_the_identity_holds_the_words_of_the_tokenizer(encoder: TextEncoder) -> None:
    facts = encoder.facts()
    assert len(facts["tokenizer"]) == 64
    assert facts["max_length"] == 16
