"""SNLI: pairs of sentences and one of three relations. From the official JSON lines, or those of the hub's copy."""

import json
from pathlib import Path

import numpy as np

from dpal.data.class_labels import class_numbers
from dpal.data.ids import as_ids
from dpal.data.named.dataset import NamedDataset
from dpal.data.named.download import OfficialFile
from dpal.data.pool import Pool
from dpal.data.records import TextRecords, is_text
from dpal.errors import BadData

CLASSES = ("entailment", "neutral", "contradiction")
# The annotators did not agree: these pairs are left out, as the authors do.
_NO_MAJORITY = "-"


def snli_files(part: str, size: int) -> tuple[OfficialFile, ...]:
    return (
        OfficialFile(
            address="https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
            name="snli_1.0.zip",
            checksum="sha256:afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
            unpacks_to=(f"snli_1.0/snli_1.0_{part}.jsonl",),
        ),
    )


def read_snli(folder: Path, part: str, size: int) -> Pool:
    return read_snli_file(folder / "snli_1.0" / f"snli_1.0_{part}.jsonl", part)


def read_snli_file(file: Path, part: str) -> Pool:
    """One file, with the official names (sentence1, sentence2, gold_label, pairID) or premise, hypothesis, label."""
    texts: list[tuple[str, ...]] = []
    labels: list[object] = []
    ids: list[object] = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                pair = json.loads(line)
                official = "gold_label" in pair
                label = pair["gold_label" if official else "label"]
                if label == _NO_MAJORITY:
                    continue
                sentences = (
                    (pair["sentence1"], pair["sentence2"]) if official else (pair["premise"], pair["hypothesis"])
                )
                if not all(is_text(sentence) for sentence in sentences):
                    raise TypeError(sentences)
                texts.append(sentences)
                ids.append(pair.get("pairID", f"{part}-{number:06d}"))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise BadData(f"Line {number} of {file} is not a pair of SNLI ({type(error).__name__}).") from error
            labels.append(label)
    if not texts:
        raise BadData(f"{file} is empty: it has no labelled pairs.")
    names = as_ids(ids)
    return Pool(
        name=f"snli ({part})",
        ids=names,
        records=TextRecords(texts),
        classes=CLASSES,
        labels=np.asarray(class_numbers(labels, names, CLASSES)),
        class_counts_are_public=True,
    )


SNLI = NamedDataset(parts=("train", "dev", "test"), read=read_snli, files=snli_files)
