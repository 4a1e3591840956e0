"""Fashion-MNIST: 60,000 + 10,000 grey 28 × 28 images of clothing, in IDX files."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.data.arrays import from_arrays
from dpal.data.named.dataset import NamedDataset
from dpal.data.named.download import OfficialFile
from dpal.data.pool import Pool
from dpal.errors import BadData

CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
}
# Where Debian's package dataset-fashion-mnist puts the same files.
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")

_UNSIGNED_BYTES = 8
# Twenty times the largest file of this format: a few kilobytes of gzip can unpack to more than the memory.
_MOST_BYTES = 1 << 30


def fashion_mnist_files(part: str, size: int) -> tuple[OfficialFile, ...]:
    prefix = "train" if part == "train" else "t10k"
    return tuple(
        OfficialFile(address=_ADDRESS + name, name=name, checksum=checksum)
        for name, checksum in _CHECKSUMS.items()
        if name.startswith(prefix)
    )


def read_fashion_mnist(folder: Path, part: str, size: int) -> Pool:
    images_file, labels_file = (folder / file.name for file in fashion_mnist_files(part, size))
    images, labels = read_idx(images_file), read_idx(labels_file)
    if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
        raise BadData(f"{images_file} and {labels_file} do not belong together: {images.shape} and {labels.shape}.")
    return from_arrays(
        images[:, None],
        classes=CLASSES,
        labels=labels,
        ids=[f"{part}-{number:05d}" for number in range(len(images))],
        name=f"fashion-mnist ({part})",
        class_counts_are_public=True,
    )


def read_idx(file: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file, plain or gzipped. A truncated file or another type is refused."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            zeros, kind, dimensions = struct.unpack(">HBB", stream.read(4))
            shape = struct.unpack(f">{dimensions}I", stream.read(4 * dimensions))
            # One byte more than expected, to see whether there is more.
            content = stream.read(min(math.prod(shape), _MOST_BYTES) + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile, struct.error) as error:
        raise BadData(f"{file} is truncated, or not an IDX file ({type(error).__name__}).") from error
    if zeros != 0 or kind != _UNSIGNED_BYTES or len(content) != math.prod(shape):
        raise BadData(f"{file} is not an IDX file of unsigned bytes, or does not have exactly {shape} values.")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


FASHION_MNIST = NamedDataset(
    parts=("train", "test"),
    sizes=(28,),
    read=read_fashion_mnist,
    files=fashion_mnist_files,
    also_in=(DEBIAN_FOLDER,),
)
