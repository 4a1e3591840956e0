"""Functions of nested tensors, traced once for each set of shapes and compiled as one graph."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

# Compiled code of this process, by what it computes: later phases and campaigns trace again, but compile nothing.
_COMPILED: dict[Any, Callable[..., Any]] = {}


@dataclass(slots=True)
class CompiledFunction:
    """Calls `function` through torch.compile. Arguments and results that are not tensors are fixed when traced.

    Tracing runs the function's Python code, which may patch layers and fill lists; the graph keeps the tensor
    operations, backward pass included.
    """

    function: Callable[..., Any]
    _graphs: dict[Any, tuple[Callable[..., Any], Any]] = field(default_factory=dict)

    def __call__(self, *arguments: Any) -> Any:
        tensors: list[Tensor] = []
        structure = _take_apart(arguments, tensors)
        shapes = tuple((tuple(tensor.shape), tensor.dtype, tensor.device, tensor.stride()) for tensor in tensors)
        key = (structure, shapes)
        if key not in self._graphs:
            self._graphs[key] = self._traced(structure, tensors, shapes)
        graph, result_structure = self._graphs[key]
        with torch.no_grad():
            return _put_together(result_structure, iter(graph(*tensors)))

    def _traced(self, structure: Any, tensors: list[Tensor], shapes: Any) -> tuple[Callable[..., Any], Any]:
        results: list[Any] = []

        def flat(*given: Tensor) -> list[Tensor]:
            outputs: list[Tensor] = []
            with torch.enable_grad():
                result = self.function(*_put_together(structure, iter(given)))
            results.append(_take_apart(result, outputs))
            return [tensor.detach() for tensor in outputs]

        # Tracing runs dropout too: it must not change the random numbers that follow.
        devices = {tensor.device for tensor in tensors if tensor.is_cuda}
        with torch.random.fork_rng(devices=list(devices)):
            graph = make_fx(flat, decomposition_table=CHEAPER_FORMS)(*tensors)
        key = (shapes, _meaning(graph))
        if key not in _COMPILED:
            _COMPILED[key] = torch.compile(graph, dynamic=False)
        return _COMPILED[key], results[-1]


def _meaning(graph: GraphModule) -> tuple[str, tuple[str, ...]]:
    """What a graph computes: its operations, and the constants that they use."""
    constants = [getattr(graph, str(node.target)) for node in graph.graph.nodes if node.op == "get_attr"]
    return graph.code, tuple(_digest(constant) for constant in constants)


def _digest(constant: Any) -> str:
    if not isinstance(constant, Tensor):
        # Unknown, so never taken for the same.
        return f"{type(constant).__name__} {id(constant)}"
    values = constant.detach().cpu().contiguous()
    return (
        f"{values.dtype} {tuple(values.shape)} "
        + hashlib.sha256(values.flatten().view(torch.uint8).numpy().tobytes()).hexdigest()
    )


def _take_apart(value: Any, tensors: list[Tensor]) -> Any:
    """The value with every tensor moved to the list, as something that can be compared and put together again."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _HOLE
    if isinstance(value, dict):
        return ("dict", tuple((key, _take_apart(item, tensors)) for key, item in value.items()))
    if isinstance(value, tuple | list):
        return ("tuple", tuple(_take_apart(item, tensors) for item in value))
    if is_dataclass(value) and not isinstance(value, type):
        members = tuple((own.name, _take_apart(getattr(value, own.name), tensors)) for own in fields(value))
        return ("dataclass", type(value), members)
    return ("plain", value)


_HOLE = ("tensor",)


def _put_together(structure: Any, tensors: Any) -> Any:
    if structure == _HOLE:
        return next(tensors)
    kind, *rest = structure
    if kind == "dict":
        return {key: _put_together(item, tensors) for key, item in rest[0]}
    if kind == "tuple":
        return tuple(_put_together(item, tensors) for item in rest[0])
    if kind == "dataclass":
        return rest[0](**{name: _put_together(item, tensors) for name, item in rest[1]})
    return rest[0]


# Above this, Mish equals its argument, even in float64.
_LINEAR = 20.0


def _mish_parts(given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The argument x, e^x, and n = e^x (e^x + 2). Then tanh(log(1 + e^x)) = n / (n + 2), with one exponential only."""
    x = given.to(torch.promote_types(given.dtype, torch.float32))
    e = torch.exp(x.clamp(max=_LINEAR))
    return x, e, e * (e + 2)


def mish(given: Tensor) -> Tensor:
    """Mish, x · tanh(log(1 + e^x))."""
    x, _, n = _mish_parts(given)
    return (x * (n / (n + 2))).to(given.dtype)


def mish_backward(gradient: Tensor, given: Tensor) -> Tensor:
    """The gradient times the derivative, n / (n + 2) + 4 x e^x (1 + e^x) / (n + 2)²."""
    x, e, n = _mish_parts(given)
    inverse = 1 / (n + 2)
    # Where x is larger, the second term vanishes.
    derivative = n * inverse + 4 * x.clamp(max=_LINEAR) * (e * inverse) * ((1 + e) * inverse)
    return (gradient * derivative).to(given.dtype)


# Functions in cheaper forms than the compiler's own.
CHEAPER_FORMS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.mish.default: mish,
    torch.ops.aten.mish_backward.default: mish_backward,
}
