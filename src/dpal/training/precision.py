"""How products of float32 numbers may be rounded on a GPU."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from dpal.errors import DpalError


@contextmanager
def tf32_allowed(allowed: bool) -> Generator[None]:
    """Inside, float32 products on CUDA round their operands to TF32 only if allowed. Afterwards all is as before.

    Convolutions are deterministic too: how a record is rounded must not change from one run to the next.
    """
    matmul: Any = torch.backends.cuda.matmul
    convolution: Any = torch.backends.cudnn
    try:
        before = matmul.allow_tf32, convolution.allow_tf32, convolution.deterministic
    except RuntimeError as error:
        raise DpalError(
            "Torch's TF32 setting was changed through fp32_precision, which dpal cannot work with. Leave it alone and "
            "choose a precision in dpal instead."
        ) from error
    matmul.allow_tf32 = convolution.allow_tf32 = allowed
    convolution.deterministic = True
    try:
        yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32, convolution.deterministic = before
