"""Which arithmetic products may use: how float32 numbers are rounded, and always the same way."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from dpal.errors import InvalidArgument


@contextmanager
def tf32_allowed(allowed: bool) -> Generator[None]:
    """Inside, float32 products on CUDA round their operands to TF32 only if allowed; then everything is as before.

    Convolutions are deterministic too: how a record is rounded must not change from one run to the next.
    """
    matmul: Any = torch.backends.cuda.matmul
    convolution: Any = torch.backends.cudnn
    try:
        before = matmul.allow_tf32, convolution.allow_tf32, convolution.deterministic
    except RuntimeError as error:
        raise InvalidArgument(
            "torch's TF32 setting", "made through fp32_precision", "left alone: choose a precision in dpal instead"
        ) from error
    matmul.allow_tf32 = convolution.allow_tf32 = allowed
    convolution.deterministic = True
    try:
        yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32, convolution.deterministic = before
