"""Pictures that formulas make: the same on every machine, and no two alike."""

import numpy as np
from numpy.typing import NDArray


def waves(side: int = 96, channels: int = 3, number: int = 0) -> NDArray[np.uint8]:
    """One picture of coloured waves, (channels, side, side)."""
    along = np.arange(side)
    planes = [
        127.5 + 127.5 * np.sin(0.11 * (plane + 1 + number) * along[:, None] + 0.07 * (plane + 2) * along[None])
        for plane in range(channels)
    ]
    return np.stack(planes).astype(np.uint8)


def album(count: int, side: int = 40, channels: int = 3) -> NDArray[np.uint8]:
    """Several of them."""
    return np.stack([waves(side, channels, number) for number in range(count)])
