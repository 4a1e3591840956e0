"""The IDX format of MNIST and Fashion-MNIST, plain or gzipped."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.errors import BadData

_UNSIGNED_BYTES = 8
# Twenty times what the largest file of this format has: some kilobytes of gzip can unpack to all of the memory.
_MOST_BYTES = 1 << 30


def read_idx(file: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file; a file that is cut short or has another type is refused."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            zeros, kind, dimensions = struct.unpack(">HBB", stream.read(4))
            shape = struct.unpack(f">{dimensions}I", stream.read(4 * dimensions))
            # One byte more than there should be, to see whether there is one.
            content = stream.read(min(math.prod(shape), _MOST_BYTES) + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile, struct.error) as error:
        raise BadData(f"{file} is cut short or no IDX file ({type(error).__name__}).") from error
    if zeros != 0 or kind != _UNSIGNED_BYTES or len(content) != math.prod(shape):
        raise BadData(f"{file} is no IDX file of unsigned bytes, or has more or less than its {shape} values.")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
