"""SNLI from a few lines of both of its formats."""

import json
from pathlib import Path

import pytest

from dpal.data import load_dataset
from dpal.data.named.snli import read_snli_file
from dpal.data.records import TextRecords
from dpal.errors import BadData


def snli_line(label: str, number: int) -> str:
    pair = {
        "annotator_labels": [label],
        "captionID": f"{number}.jpg#0",
        "gold_label": label,
        "pairID": f"{number}.jpg#0r1n",
        "sentence1": f"A man {number}.",
        "sentence1_binary_parse": "( A man )",
        "sentence1_parse": "(ROOT)",
        "sentence2": "Somebody.",
        "sentence2_binary_parse": "( Somebody )",
        "sentence2_parse": "(ROOT)",
    }
    return json.dumps(pair)


def test_snli_leaves_out_pairs_without_a_majority(tmp_path: Path) -> None:
    folder = tmp_path / "snli_1.0"
    folder.mkdir()
    labels = ["neutral", "-", "contradiction", "entailment"]
    lines = "\n".join(snli_line(label, number) for number, label in enumerate(labels))
    (folder / "snli_1.0_dev.jsonl").write_text(lines + "\n")
    pool = load_dataset("snli", part="dev", folder=tmp_path)
    assert pool.ids.tolist() == ["0.jpg#0r1n", "2.jpg#0r1n", "3.jpg#0r1n"]
    assert pool.labels is not None
    assert pool.labels.tolist() == [1, 2, 0]
    assert isinstance(pool.records, TextRecords)
    assert pool.records.texts[1] == ("A man 2.", "Somebody.")
    (folder / "snli_1.0_dev.jsonl").write_text(lines + '\n{"gold_label": "neutral"}\n')
    with pytest.raises(BadData, match="Line 5"):
        load_dataset("snli", part="dev", folder=tmp_path)
    (folder / "snli_1.0_dev.jsonl").write_text(lines.replace('"Somebody."', "null"))
    with pytest.raises(BadData, match="Line 1"):
        load_dataset("snli", part="dev", folder=tmp_path)
    file = tmp_path / "hub.jsonl"
    file.write_text('{"premise": "a", "hypothesis": "b", "label": "entailment"}\n')
    assert read_snli_file(file, "dev").ids.tolist() == ["dev-000001"]
