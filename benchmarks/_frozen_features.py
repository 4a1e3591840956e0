"""Frozen features of public images for active_learning.py: EfficientNet-Lite0, trained on ImageNet.

    python benchmarks/_frozen_features.py --bloodcell FOLDER --skin FOLDER --to FOLDER

The folders hold parquet files with the columns id, image and label; the skin lesions also lesions.csv (id, lesion).
Each dataset is standardised with the mean and deviation of the other: they stand for public constants, so that nothing
is learned from the pool before privacy begins. Rows are scaled to one norm, which a record's own values decide.
"""

import argparse
import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
from numpy.typing import NDArray
from PIL import Image

from dpal.models import Encoder, encoder_named

SIDE = 128
ROW_NORM = 2.0
# Standardised features beyond this many deviations are cut off.
LARGEST = 5.0
LABELS = {"bloodcell": 2_500, "skin": 1_500}
VALIDATION_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class Part:
    """The features, labels and ids of one file."""

    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    ids: list[str]

    def at(self, chosen: NDArray[np.bool_]) -> "Part":
        ids = [name for name, is_chosen in zip(self.ids, chosen, strict=True) if is_chosen]
        return Part(features=self.features[chosen], labels=self.labels[chosen], ids=ids)


def part(file: Path, encoder: Encoder) -> Part:
    table = parquet.read_table(file)
    images = [Image.open(io.BytesIO(image["bytes"])).convert("RGB") for image in table["image"].to_pylist()]
    rows = encoder.encode(np.stack([np.asarray(image).transpose(2, 0, 1) for image in images]))
    return Part(
        # Half precision is what is stored in the end, too.
        features=rows.astype(np.float16).astype(np.float32),
        labels=np.asarray(table["label"].to_pylist(), dtype=np.int64),
        ids=table["id"].to_pylist(),
    )


def bloodcell(folder: Path, encoder: Encoder) -> dict[str, Part]:
    files = {"pool": "train", "validation": "val", "test": "test"}
    return {name: part(folder / f"{file}.parquet", encoder) for name, file in files.items()}


def skin(folder: Path, encoder: Encoder) -> dict[str, Part]:
    """The validation records are split off by lesion: images of one lesion are on one side."""
    train = part(folder / "train.parquet", encoder)
    with (folder / "lesions.csv").open(newline="") as table:
        lesion_of = {row["id"]: row["lesion"] for row in csv.DictReader(table)}
    lesions = sorted({lesion_of[name] for name in train.ids})
    held_out = set(np.random.default_rng(0).permutation(lesions)[: round(VALIDATION_SHARE * len(lesions))].tolist())
    validated = np.array([lesion_of[name] in held_out for name in train.ids])
    return {
        "pool": train.at(~validated),
        "validation": train.at(validated),
        "test": part(folder / "test.parquet", encoder),
    }


def scaled(features: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float16]:
    standard = np.clip((features - other.mean(axis=0)) / (other.std(axis=0) + 1e-3), -LARGEST, LARGEST)
    return (ROW_NORM * standard / np.linalg.norm(standard, axis=1, keepdims=True)).astype(np.float16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bloodcell", "skin", "to"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    encoder = encoder_named("efficientnet-lite0", side=SIDE)
    datasets = {"bloodcell": bloodcell(options.bloodcell, encoder), "skin": skin(options.skin, encoder)}
    for name, other in (("bloodcell", "skin"), ("skin", "bloodcell")):
        public = datasets[other]["pool"].features
        arrays: dict[str, NDArray[np.generic]] = {"labels": np.asarray(LABELS[name])}
        for part_name, records in datasets[name].items():
            arrays[f"{part_name}_x"] = scaled(records.features, public)
            arrays[f"{part_name}_y"] = records.labels
        np.savez(options.to / f"{name}.npz", **arrays)
        print(name, {key: array.shape for key, array in arrays.items()})


if __name__ == "__main__":
    main()
