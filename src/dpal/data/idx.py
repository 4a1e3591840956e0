"""The IDX format of MNIST and Fashion-MNIST, plain or gzipped."""

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.errors import BadData

_UNSIGNED_BYTES = 8


def read_idx(file: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file; a file that is cut short or has another type is refused."""
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        zeros, kind, dimensions = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{dimensions}I", content, offset=4)
    except (EOFError, zlib.error, gzip.BadGzipFile, struct.error) as error:
        raise BadData(f"{file} is cut short or no IDX file ({type(error).__name__}).") from error
    start = 4 + 4 * dimensions
    if zeros != 0 or kind != _UNSIGNED_BYTES or len(content) - start != int(np.prod(shape)):
        raise BadData(f"{file} is no IDX file of unsigned bytes, or has not all of its {shape} values.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
