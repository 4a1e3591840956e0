"""BloodMNIST and OCTMNIST of MedMNIST v2, 28 to 224 pixels, from the official npz files."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpal.data.arrays import from_arrays
from dpal.data.named.dataset import NamedDataset
from dpal.data.named.download import OfficialFile
from dpal.data.pool import Pool
from dpal.errors import BadData

_ADDRESS = "https://zenodo.org/records/10519652/files/"


@dataclass(frozen=True, slots=True, kw_only=True)
class MedMNIST:
    """One of its datasets: the classes, and the checksum of the file of each size."""

    flag: str
    classes: tuple[str, ...]
    checksums: dict[int, str]

    def _name(self, size: int) -> str:
        return f"{self.flag}.npz" if size == 28 else f"{self.flag}_{size}.npz"

    def files(self, part: str, size: int) -> tuple[OfficialFile, ...]:
        name = self._name(size)
        return (OfficialFile(address=f"{_ADDRESS}{name}", name=name, checksum=self.checksums[size]),)

    def read(self, folder: Path, part: str, size: int) -> Pool:
        file = folder / self._name(size)
        try:
            with file.open("rb") as content, np.load(content, allow_pickle=False) as arrays:
                images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise BadData(
                f"{file} is not a MedMNIST file with {part}_images and {part}_labels ({type(error).__name__})."
            ) from error
        grey = images.ndim == 3
        if images.dtype != np.uint8 or images.shape[1:3] != (size, size) or labels.shape != (len(images), 1):
            raise BadData(
                f"{file} has images of {images.dtype} {images.shape} and labels of {labels.shape}; uint8 of {size} × "
                f"{size} and one label each were expected."
            )
        return from_arrays(
            images[:, None] if grey else images.transpose(0, 3, 1, 2),
            classes=self.classes,
            labels=labels[:, 0],
            ids=[f"{part}-{number:06d}" for number in range(len(images))],
            name=f"{self.flag} {size} ({part})",
            class_counts_are_public=True,
        )

    def dataset(self) -> NamedDataset:
        sizes = tuple(sorted(self.checksums))
        return NamedDataset(parts=("train", "val", "test"), sizes=sizes, read=self.read, files=self.files)


BLOODMNIST = MedMNIST(
    flag="bloodmnist",
    classes=(
        "basophil",
        "eosinophil",
        "erythroblast",
        "immature granulocytes",
        "lymphocyte",
        "monocyte",
        "neutrophil",
        "platelet",
    ),
    checksums={
        28: "md5:7053d0359d879ad8a5505303e11de1dc",
        64: "md5:2b94928a2ae4916078ca51e05b6b800b",
        128: "md5:adace1e0ed228fccda1f39692059dd4c",
        224: "md5:b718ff6835fcbdb22ba9eacccd7b2601",
    },
).dataset()
OCTMNIST = MedMNIST(
    flag="octmnist",
    classes=("choroidal neovascularization", "diabetic macular edema", "drusen", "normal"),
    checksums={
        28: "md5:c68d92d5b585d8d81f7112f81e2d0842",
        64: "md5:e229e9440236b774d9f0dfef9d07bdaf",
        128: "md5:0a97e76651ace45c5d943ee3f65b63ae",
        224: "md5:abc493b6d529d5de7569faaef2773ba3",
    },
).dataset()
