"""A function of nested tensors, traced once for each set of shapes and compiled as one graph."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from dpal.training.cheaper import CHEAPER

# Compiled code and the structure of its results, by the structure and shapes of its arguments.
Graphs = dict[Any, tuple[Callable[..., Any], Any]]


@dataclass(slots=True)
class CompiledFunction:
    """Calls `function` through torch.compile. What is not a tensor in arguments or results is fixed when traced.

    `graphs` may be shared by functions that do the same. Tracing runs the function's Python code, so layers may be
    patched and lists filled meanwhile; the graph keeps the tensor operations, backward pass included.
    """

    function: Callable[..., Any]
    graphs: Graphs = field(default_factory=dict)

    def __call__(self, *arguments: Any) -> Any:
        tensors: list[Tensor] = []
        structure = _take_apart(arguments, tensors)
        key = (
            structure,
            tuple((tuple(tensor.shape), tensor.dtype, tensor.device, tensor.stride()) for tensor in tensors),
        )
        if key not in self.graphs:
            self.graphs[key] = self._traced(structure, tensors)
        graph, result_structure = self.graphs[key]
        with torch.no_grad():
            return _put_together(result_structure, iter(graph(*tensors)))

    def _traced(self, structure: Any, tensors: list[Tensor]) -> tuple[Callable[..., Any], Any]:
        results: list[Any] = []

        def flat(*given: Tensor) -> list[Tensor]:
            found: list[Tensor] = []
            with torch.enable_grad():
                result = self.function(*_put_together(structure, iter(given)))
            results.append(_take_apart(result, found))
            return [tensor.detach() for tensor in found]

        graph = make_fx(flat, decomposition_table=CHEAPER)(*tensors)
        return torch.compile(graph, dynamic=False), results[-1]


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
