"""A trained model as ONNX: records as they are go in, bytes or features or token numbers, and logits come out."""

import logging
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dpal.errors import DpalError
from dpal.imports import optional
from dpal.training.batches import called
from dpal.training.settings import Scaling
from dpal.training.sources import scaled

_ROWS = 3


class _FromRecords(nn.Module):
    """The model with its scaling in front, so that nobody has to know of it."""

    def __init__(self, model: nn.Module, names: list[str], scaling: Scaling) -> None:
        super().__init__()
        self.model, self.names, self.scaling = model, names, scaling

    def forward(self, *inputs: Tensor) -> Any:
        batch = inputs[0] if self.names == [""] else dict(zip(self.names, inputs, strict=True))
        outputs = called(self.model, scaled(batch, self.scaling))
        return outputs if isinstance(outputs, Tensor) else outputs.logits


def export_onnx(path: Path, model: nn.Module, form: Mapping[str, Any], scaling: Scaling) -> None:
    """Write the model for any number of records at a time. Its inputs are called as the records' parts, or records.

    `form` has the type and shape of each part of a record.
    """
    optional("onnxscript", extra="onnx")
    names = list(form)
    examples = tuple(
        torch.zeros((_ROWS, *part.shape), dtype=torch.from_numpy(part.dtype.type(0).reshape(1)).dtype)
        for part in form.values()
    )
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    was_training = model.training
    wrapped = _FromRecords(model, names, scaling).eval()
    try:
        with _quiet():
            program = torch.onnx.export(
                wrapped,
                tuple(example.to(device) for example in examples),
                dynamo=True,
                input_names=[name or "records" for name in names],
                output_names=["logits"],
                dynamic_shapes={"inputs": tuple({0: torch.export.Dim("batch")} for _ in names)},
                verbose=False,
            )
    # torch raises whatever its exporter meets in somebody's model.
    except Exception as error:
        raise DpalError(
            f"This model cannot be written as ONNX ({type(error).__name__}). Its weights can: leave --onnx out. "
            "Nothing was written."
        ) from error
    finally:
        model.train(was_training)
    if program is None:
        raise DpalError("This model cannot be written as ONNX. Its weights can: leave --onnx out. Nothing was written.")
    # The exporter notes where in whose source files each node comes from: what an export says is passed on.
    optional("onnx_ir.passes.common", extra="onnx").ClearMetadataAndDocStringPass()(program.model)
    program.save(str(path))


@contextmanager
def _quiet() -> Generator[None]:
    """The exporter speaks of packages that are not needed here."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
