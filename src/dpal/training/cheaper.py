"""Functions in a cheaper form than the compiler's own, for graphs that are traced."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# From here on Mish is its argument, also in float64.
_LINEAR = 20.0


def _parts(given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The argument x, e^x, and n = e^x (e^x + 2). Then tanh(log(1 + e^x)) = n / (n + 2), with one exponential only."""
    x = given.to(torch.promote_types(given.dtype, torch.float32))
    e = torch.exp(x.clamp(max=_LINEAR))
    return x, e, e * (e + 2)


def mish(given: Tensor) -> Tensor:
    """Mish, x · tanh(log(1 + e^x))."""
    x, _, n = _parts(given)
    return (x * (n / (n + 2))).to(given.dtype)


def mish_backward(gradient: Tensor, given: Tensor) -> Tensor:
    """The gradient times the derivative, n / (n + 2) + 4 x e^x (1 + e^x) / (n + 2)²."""
    x, e, n = _parts(given)
    inverse = 1 / (n + 2)
    # Where x is larger, the second part is nothing.
    derivative = n * inverse + 4 * x.clamp(max=_LINEAR) * (e * inverse) * ((1 + e) * inverse)
    return (gradient * derivative).to(given.dtype)


CHEAPER: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.mish.default: mish,
    torch.ops.aten.mish_backward.default: mish_backward,
}
