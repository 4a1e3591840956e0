"""Predictions: a model's logits for many records."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.errors import DpalError, InvalidArgument
from dpal.training.batches import called, record_count
from dpal.training.engines.engine_checks import buffers_kept, modes_kept
from dpal.training.progress import counted
from dpal.training.settings import require_precision
from dpal.training.sources import Source

# A record's place in its batch may decide the last bits of its prediction, so who relies on places uses this number.
BATCH_SIZE = 512


def logits(
    model: nn.Module,
    source: Source,
    positions: NDArray[np.int64],
    *,
    batch_size: int = BATCH_SIZE,
    passes: int = 1,
    precision: str = "float32",
    words: str = "predicting",
) -> NDArray[np.float32]:
    """The logits of these records: (records, classes), or with passes above 1 (passes, records, classes).

    Several passes are Monte Carlo dropout, for BALD: dropout layers stay on, all else is in prediction mode.
    """
    require_precision(precision)
    for name, number in (("batch_size", batch_size), ("passes", passes)):
        if number < 1:
            raise InvalidArgument(name, number, "at least 1")
    device_type = next(model.parameters()).device.type
    outputs: list[Tensor] = []
    # Whatever a model stored while it predicts would be about private records, and be published with it.
    with modes_kept(model), buffers_kept(model):
        model.eval()
        if passes > 1:
            _dropout_on(model)
        with torch.no_grad(), torch.autocast(device_type, torch.bfloat16, enabled=precision == "bf16"):
            batches = source.stream(_batches(positions, batch_size))
            for batch, _ in counted(batches, words, total=len(positions), each=batch_size):
                by_pass = [called(model, batch).float() for _ in range(passes)]
                shape = tuple(by_pass[0].shape)
                if shape[0] != record_count(batch) or len(shape) != 2:
                    raise DpalError(f"The model's output has the shape {shape}. It must be (records, classes).")
                outputs.append(torch.stack(by_pass).cpu())
    if not outputs:
        raise DpalError("There is no record to predict for.")
    joined = torch.cat(outputs, dim=1).numpy()
    return joined[0] if passes == 1 else joined


def _dropout_on(model: nn.Module) -> None:
    layers = [module for module in model.modules() if isinstance(module, nn.modules.dropout._DropoutNd)]  # pyright: ignore[reportPrivateUsage]
    if not any(layer.p > 0 for layer in layers):
        raise InvalidArgument(
            "model", type(model).__name__, "one with dropout above 0: BALD compares passes that differ by dropout"
        )
    for layer in layers:
        layer.train()


def _batches(positions: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(positions), size):
        yield positions[start : start + size]
