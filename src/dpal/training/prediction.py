"""A model's logits for many records, without training anything."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.errors import InvalidArgument
from dpal.training.engines.engine import called, record_count
from dpal.training.engines.engine_checks import buffers_kept, modes_kept
from dpal.training.settings import require_precision
from dpal.training.sources import Source


def logits(
    model: nn.Module,
    source: Source,
    positions: NDArray[np.int64],
    *,
    batch_size: int = 512,
    passes: int = 1,
    precision: str = "float32",
) -> NDArray[np.float32]:
    """The logits of these records: (records, classes), or with passes above 1 (passes, records, classes).

    Several passes are Monte Carlo dropout, for BALD: dropout layers stay on, everything else is as in prediction.
    """
    require_precision(precision)
    for name, number in (("batch_size", batch_size), ("passes", passes)):
        if number < 1:
            raise InvalidArgument(name, number, "at least 1")
    device_type = next(model.parameters()).device.type
    found: list[Tensor] = []
    # Whatever a model writes down while it predicts would be about private records, and leave with it.
    with modes_kept(model), buffers_kept(model):
        model.eval()
        if passes > 1:
            _dropout_on(model)
        with torch.no_grad(), torch.autocast(device_type, torch.bfloat16, enabled=precision == "bf16"):
            for batch, _ in source.stream(_parts(positions, batch_size)):
                each = [called(model, batch).float() for _ in range(passes)]
                if each[0].shape[0] != record_count(batch) or each[0].ndim != 2:
                    raise InvalidArgument("the shape of the model's output", tuple(each[0].shape), "(records, classes)")
                found.append(torch.stack(each).cpu())
    if not found:
        raise InvalidArgument("the number of records", 0, "at least 1")
    joined = torch.cat(found, dim=1).numpy()
    return joined[0] if passes == 1 else joined


def _dropout_on(model: nn.Module) -> None:
    layers = [each for each in model.modules() if isinstance(each, nn.modules.dropout._DropoutNd)]  # pyright: ignore[reportPrivateUsage]
    if not any(layer.p > 0 for layer in layers):
        raise InvalidArgument(
            "the model", type(model).__name__, "one with dropout above 0: BALD compares passes that differ by dropout"
        )
    for layer in layers:
        layer.train()


def _parts(positions: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(positions), size):
        yield positions[start : start + size]
