"""The datasets with a name."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dpal.data.chexpert import DEFAULT_SIZE as CHEXPERT_SIZE
from dpal.data.chexpert import read_chexpert
from dpal.data.cifar10 import cifar10_files, cifar10_pickles_are_there, read_cifar10
from dpal.data.digits import read_digits
from dpal.data.download import OfficialFile, data_folder, ensure
from dpal.data.fashion_mnist import DEBIAN_FOLDER, fashion_mnist_files, read_fashion_mnist
from dpal.data.medmnist import BLOODMNIST, OCTMNIST
from dpal.data.pool import Pool
from dpal.data.snli import read_snli, snli_files
from dpal.errors import InvalidArgument


def _no_files(part: str, size: int) -> tuple[OfficialFile, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDataset:
    """A published dataset: its parts, its sizes in pixels (none for texts), its files and how they are read."""

    parts: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    read: Callable[[Path, str, int], Pool]
    files: Callable[[str, int], tuple[OfficialFile, ...]] = _no_files
    # The official files in a second form that is read too.
    other_form_is_there: Callable[[Path, str], bool] = lambda folder, part: False
    also_in: tuple[Path, ...] = ()
    any_size: bool = False


DATASETS: dict[str, NamedDataset] = {
    "digits": NamedDataset(parts=("train", "test"), sizes=(8,), read=read_digits),
    "fashion-mnist": NamedDataset(
        parts=("train", "test"),
        sizes=(28,),
        read=read_fashion_mnist,
        files=fashion_mnist_files,
        also_in=(DEBIAN_FOLDER,),
    ),
    "cifar10": NamedDataset(
        parts=("train", "test"),
        sizes=(32,),
        read=read_cifar10,
        files=cifar10_files,
        other_form_is_there=cifar10_pickles_are_there,
    ),
    "bloodmnist": NamedDataset(
        parts=("train", "val", "test"), sizes=(28, 64, 128, 224), read=BLOODMNIST.read, files=BLOODMNIST.files
    ),
    "octmnist": NamedDataset(
        parts=("train", "val", "test"), sizes=(28, 64, 128, 224), read=OCTMNIST.read, files=OCTMNIST.files
    ),
    "chexpert": NamedDataset(parts=("train", "valid"), sizes=(CHEXPERT_SIZE,), read=read_chexpert, any_size=True),
    "snli": NamedDataset(parts=("train", "dev", "test"), read=read_snli, files=snli_files),
}


def load_dataset(
    name: str,
    *,
    part: str = "train",
    size: int | None = None,
    folder: Path | str | None = None,
    download: bool = False,
) -> Pool:
    """A named dataset's part, from a folder (default: the name's folder in $DPAL_DATA or in the cache).

    Nothing is fetched unless a download is asked for. The counts of classes of published datasets are public, and their
    ids are known to everyone.
    """
    if name not in DATASETS:
        raise InvalidArgument("the dataset", name, f"one of {', '.join(DATASETS)}")
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
