"""A function of nested tensors, traced once for each set of shapes and compiled as one graph."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from dpal.training.cheaper import CHEAPER

# Compiled code of this process by what it computes: further phases and campaigns trace, and find it here.
_COMPILED: dict[Any, Callable[..., Any]] = {}


@dataclass(slots=True)
class CompiledFunction:
    """Calls `function` through torch.compile. What is not a tensor in arguments or results is fixed when traced.

    Tracing runs the function's Python code, so layers may be patched and lists filled meanwhile; the graph keeps the
    tensor operations, backward pass included.
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
            found: list[Tensor] = []
            with torch.enable_grad():
                result = self.function(*_put_together(structure, iter(given)))
            results.append(_take_apart(result, found))
            return [tensor.detach() for tensor in found]

        # Tracing computes, dropout included: what follows must not draw otherwise because of it.
        devices = {tensor.device for tensor in tensors if tensor.is_cuda}
        with torch.random.fork_rng(devices=list(devices)):
            graph = make_fx(flat, decomposition_table=CHEAPER)(*tensors)
        key = (shapes, _meaning(graph))
        if key not in _COMPILED:
            _COMPILED[key] = torch.compile(graph, dynamic=False)
        return _COMPILED[key], results[-1]


def _meaning(graph: GraphModule) -> tuple[str, tuple[str, ...]]:
    """What a graph computes: its operations, and the constants that they use."""
    constants = [getattr(graph, str(node.target)) for node in graph.graph.nodes if node.op == "get_attr"]
    return graph.code, tuple(_digest(each) for each in constants)


def _digest(constant: Any) -> str:
    if not isinstance(constant, Tensor):
        # Unknown, so never the same.
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
        return ("dict", tuple((key, _take_apart(part, tensors)) for key, part in value.items()))
    if isinstance(value, tuple | list):
        return ("tuple", tuple(_take_apart(part, tensors) for part in value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = tuple((each.name, _take_apart(getattr(value, each.name), tensors)) for each in fields(value))
        return ("dataclass", type(value), parts)
    return ("plain", value)


_HOLE = ("tensor",)


def _put_together(structure: Any, tensors: Any) -> Any:
    if structure == _HOLE:
        return next(tensors)
    kind, *rest = structure
    if kind == "dict":
        return {key: _put_together(part, tensors) for key, part in rest[0]}
    if kind == "tuple":
        return tuple(_put_together(part, tensors) for part in rest[0])
    if kind == "dataclass":
        return rest[0](**{name: _put_together(part, tensors) for name, part in rest[1]})
    return rest[0]
