"""Published datasets by name."""

from dataclasses import replace
from pathlib import Path

from dpal.data.named.chexpert import CHEXPERT
from dpal.data.named.cifar10 import CIFAR10
from dpal.data.named.dataset import NamedDataset
from dpal.data.named.digits import DIGITS
from dpal.data.named.download import data_folder, ensure
from dpal.data.named.fashion_mnist import FASHION_MNIST
from dpal.data.named.medmnist import BLOODMNIST, OCTMNIST
from dpal.data.named.snli import SNLI
from dpal.data.pool import Pool
from dpal.errors import InvalidArgument

DATASETS: dict[str, NamedDataset] = {
    "digits": DIGITS,
    "fashion-mnist": FASHION_MNIST,
    "cifar10": CIFAR10,
    "bloodmnist": BLOODMNIST,
    "octmnist": OCTMNIST,
    "chexpert": CHEXPERT,
    "snli": SNLI,
}


def load_dataset(
    name: str,
    *,
    part: str = "train",
    size: int | None = None,
    folder: Path | str | None = None,
    download: bool = False,
) -> Pool:
    """One part of a named dataset, from a folder (default: the one with its name in $DPAL_DATA or in the cache).

    Nothing is downloaded unless asked for. Published datasets have public ids and class counts.
    """
    if name not in DATASETS:
        raise InvalidArgument("name", name, f"one of {', '.join(DATASETS)}")
    dataset = DATASETS[name]
    if part not in dataset.parts:
        raise InvalidArgument("part", part, f"one of {', '.join(dataset.parts)} for {name}")
    chosen = size if size is not None else (dataset.sizes[0] if dataset.sizes else 0)
    if dataset.sizes and chosen not in dataset.sizes and not dataset.any_size:
        raise InvalidArgument("size", size, f"one of {', '.join(map(str, dataset.sizes))} for {name}")
    place = Path(folder) if folder is not None else data_folder() / name
    if folder is None:
        for other in dataset.also_in:
            if all(file.present(other) for file in dataset.files(part, chosen)):
                return replace(dataset.read(other, part, chosen), published=name, ids_are_free_of_content=True)
    if not dataset.other_form_is_there(place, part):
        ensure(dataset.files(part, chosen), place, title=name, download=download)
    return replace(dataset.read(place, part, chosen), published=name, ids_are_free_of_content=True)
