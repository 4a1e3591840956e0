"""A private mean of all records' (or units') features: what a head on a frozen encoder subtracts from them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpal.errors import InvalidArgument
from dpal.randomness import Randomness
from dpal.training.noise import gaussian_noise
from dpal.training.sampling import BLANK, Positions
from dpal.training.sources import Readable
from dpal.training.units import checked_units, padded

_CHUNK = 1024
# Rows are rounded towards 0 to multiples of this and summed as whole numbers, so no order and no company of records
# changes the sum, and one record moves it by exactly its own row.
_UNIT = 2.0**-32


@runtime_checkable
class Centred(Protocol):
    """A model that subtracts a mean from what it is given."""

    # The mean that is subtracted, as a buffer of the model.
    centre: Tensor

    def before_centre(self, rows: Tensor) -> Tensor:
        """Each record's row just before the mean is subtracted. A row depends on that record alone."""
        ...


def centred(model: object) -> Centred:
    """The model, if it subtracts a mean."""
    if not isinstance(model, Centred):
        allowed = "null for this model: only `features`, a head on an encoder, subtracts a mean"
        raise InvalidArgument("mean_noise_multiplier", "given", allowed)
    return model


def set_centre(model: object, mean: Sequence[float]) -> None:
    """Let the model subtract this mean from now on."""
    centre = centred(model).centre
    if len(mean) != centre.numel():
        allowed = f"{centre.numel():,}, as the model has"
        raise InvalidArgument("the number of the mean's coordinates", len(mean), allowed)
    centre.copy_(torch.tensor(mean, dtype=centre.dtype))


@torch.no_grad()
def private_mean(
    model: Centred,
    records: Readable,
    *,
    pool_size: int,
    noise_multiplier: float,
    randomness: Randomness,
    units: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """The mean of all rows, each scaled down to a norm of at most 1, with Gaussian noise on their sum.

    `pool_size` is the planned number: a record that was withdrawn, or is not finite, is a row of zeros. With `units`, a
    table (units, rows) of their records with `BLANK` in empty seats, a unit's row is the mean of its records' rows, and
    `pool_size` counts units.
    """
    if units is None:
        units = np.arange(len(records))[:, None]
    table = checked_units(units, len(records))
    total = np.zeros(tuple(model.centre.shape), dtype=np.int64)
    together = max(1, _CHUNK // table.shape[1])
    for start in range(0, len(table), together):
        total += whole_rows(_unit_rows(model, records, table[start : start + together])).sum(axis=0)
    noise = gaussian_noise(len(total), torch.device("cpu"), randomness=randomness).numpy()
    return (total * _UNIT + noise_multiplier * noise) / pool_size


def _unit_rows(model: Centred, records: Readable, table: Positions) -> NDArray[np.float64]:
    """The mean of each unit's rows that are finite. Only its own records decide it: everyone's shapes are public."""
    # A unit without any record reads the first one of the pool, which does not count.
    values = records.read(np.maximum(padded(table), 0).reshape(-1))
    rows = model.before_centre(torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))).double().numpy()
    rows = rows.reshape(*table.shape, -1)
    counted = (table != BLANK) & np.isfinite(rows).all(axis=2)
    total = np.where(counted[:, :, None], rows, 0.0).sum(axis=1)
    return total / np.maximum(1, counted.sum(axis=1, keepdims=True))


def whole_rows(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows of a norm of at most 1 in units of 2^-32, rounded towards 0. A row that is not finite is 0."""
    finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    norms = np.sqrt(np.square(finite).sum(axis=1, keepdims=True))
    # A margin for the rounding of the norm itself.
    bounded = finite / np.maximum(norms * (1 + 1e-12), 1.0)
    return np.trunc(bounded / _UNIT).astype(np.int64)
