"""The default engine: one forward and one backward pass, then norms and sums from what was captured of the layers."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from dpal.training.batches import Batch, rows
from dpal.training.engines import convolution_kernels, matrix_gradients
from dpal.training.engines.clipping import (
    LARGEST_CANCELLATION,
    NORM_ROUNDING,
    Gradients,
    blank_broken,
    is_usable,
    weighted_sum,
)
from dpal.training.engines.compilation import CompiledFunction
from dpal.training.engines.custom_operators import (
    convolution_record_gradients,
    convolution_record_squares,
    convolution_weighted_sum,
)
from dpal.training.engines.engine import ClippedSum, ClippingEngine
from dpal.training.engines.layer_capture import Capture, Captured, Tape
from dpal.training.engines.matrix_gradients import GradientMethod
from dpal.training.precision import tf32_allowed

# Rounding of squared norms that are computed from grams in float64, relative to what they are if nothing cancels.
_GRAM_ROUNDING = 2.0**-30
# Small compared with the gradient of any record that there is something to learn from.
_SMALL_BOUND = 2.0**-12


@dataclass(slots=True)
class _Pieces:
    """What is kept of one physical batch until the sum, by each of the three methods of `matrix_gradients`.

    `squares` holds squared norms by record, of the matrices whose kernel measures what it computes.
    """

    stored: dict[str, Tensor] = field(default_factory=dict)
    sides: dict[str, matrix_gradients.Sides] = field(default_factory=dict)
    convolved: dict[str, matrix_gradients.Convolved] = field(default_factory=dict)
    squares: dict[str, Tensor] = field(default_factory=dict)

    def norms(self) -> tuple[Tensor, Tensor | None]:
        """The records' norms; and what they would be if nothing cancelled, of matrices summed over all positions."""
        squares = [square.double() for square in self.squares.values()]
        squares += [
            matrix_gradients.squared_norms(stored) for name, stored in self.stored.items() if name not in self.squares
        ]
        grams = [matrix_gradients.gram_norms(sides) for sides in self.sides.values()]
        squares += [square for square, _ in grams]
        if not squares:
            raise RuntimeError("no trainable layer took part in the forward pass")
        scales = torch.stack([scale for _, scale in grams]).sum(dim=0).clamp(min=0).sqrt() if grams else None
        return torch.stack(squares).sum(dim=0).clamp(min=0).sqrt(), scales

    def positions(self) -> int:
        """The most positions of a record that are summed together with other records'."""
        return max((sides.right.shape[2] for sides in self.sides.values()), default=0)


@dataclass(slots=True, kw_only=True)
class FusedEngine(ClippingEngine):
    """Covers Conv2d, Linear, Embedding, GroupNorm, LayerNorm and tied layers, with parameters shared or frozen.

    Compiled by default on CUDA.
    """

    name: ClassVar[str] = "fused"
    compiled: bool | None = None
    _capture: Capture = field(init=False, repr=False)
    _run_compiled: CompiledFunction = field(init=False, repr=False)
    _norms_compiled: CompiledFunction = field(init=False, repr=False)
    _sum_compiled: CompiledFunction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._capture = Capture(self.model, self.loss)
        self._run_compiled = CompiledFunction(self._run)
        self._norms_compiled = CompiledFunction(_upper_norms)
        self._sum_compiled = CompiledFunction(self._sum)

    def learn_from(self, checked: "FusedEngine") -> None:
        """Take over what another engine learned about the model, so that nothing is learned while training."""
        self._capture.copies_outputs = checked._capture.copies_outputs

    def keeps_bound(self, batch: Batch, targets: Tensor, weights: Tensor | None = None) -> bool:
        """Whether contributions of single records (or units) stay within a bound so small that all are clipped."""
        bound, self.max_grad_norm = self.max_grad_norm, _SMALL_BOUND
        try:
            for start in range(0, len(targets), self.copies):
                record = slice(start, start + self.copies)
                own = None if weights is None else weights[record]
                gradients = self.clipped_sum(rows(batch, record), targets[record], weights=own).gradients.values()
                if not sum(float(gradient.double().square().sum()) for gradient in gradients) <= _SMALL_BOUND**2:
                    return False
        finally:
            self.max_grad_norm = bound
        return True

    def _clipped_sum(self, batch: Batch, targets: Tensor, present: Tensor, weights: Tensor | None) -> ClippedSum:
        compiled = targets.is_cuda if self.compiled is None else self.compiled
        # Three graphs: a compiler may keep more digits than it stores, so norms are taken of what was stored.
        run, measure, total = (
            (self._run_compiled, self._norms_compiled, self._sum_compiled)
            if compiled
            else (self._run, _upper_norms, self._sum)
        )
        with tf32_allowed(self.precision == "tf32"):
            healthy, pieces = run(self._parameters(), batch, targets, self._modes(), weights)
            norms = measure(pieces, healthy)
            usable = is_usable(norms, self.max_grad_norm)
            factors = self.clip_factors(norms, present, pieces.positions())
            gradients = total(pieces, norms, factors, compiled)
        return ClippedSum(gradients=gradients, not_finite=(present & ~usable).sum())

    def record_norms(self, batch: Batch, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        with tf32_allowed(self.precision == "tf32"):
            return self._run(self._parameters(), batch, targets, self._modes(), weights)[1].norms()[0]

    def _modes(self) -> bytes:
        """Which layers are in training mode: dropout depends on it, and so must compiled code."""
        return bytes(module.training for module in self.model.modules())

    def _run(
        self,
        parameters: dict[str, Tensor],
        batch: Batch,
        targets: Tensor,
        modes: bytes,  # not used: different modes get different graphs
        weights: Tensor | None = None,
    ) -> tuple[Tensor, _Pieces]:
        """Which records have finite losses, and what norms and sum are computed from."""
        state = {name: self._cast(tensor) for name, tensor in parameters.items()}
        if isinstance(batch, Tensor):
            batch = self._cast(batch)
        else:
            batch = {name: self._cast(array) for name, array in batch.items()}
        captured, tape = self._capture(state, batch, targets, self.copies, weights)
        with torch.no_grad():
            return torch.isfinite(captured.losses.reshape(-1, self.copies)).all(dim=1), self._pieces(captured, tape)

    def _parameters(self) -> dict[str, Tensor]:
        """Parameters and buffers, detached from autograd."""
        parameters = {name: parameter.detach() for name, parameter in self.model.named_parameters()}
        # Buffers are copied, so that nothing a forward pass stores in them stays.
        return parameters | {name: buffer.detach().clone() for name, buffer in self.model.named_buffers()}

    def _cast(self, tensor: Tensor) -> Tensor:
        return tensor.bfloat16() if self.precision == "bf16" and tensor.is_floating_point() else tensor

    def _pieces(self, captured: Captured, tape: Tape) -> _Pieces:
        pieces = _Pieces()
        for name, uses in _positions_by_name([use.parameter for use in tape.matrix_uses]).items():
            self._add_matrix(pieces, name, captured, tape, uses)
        for name, uses in _positions_by_name(tape.vector_names).items():
            total = sum((captured.vector_gradients[i] for i in uses[1:]), captured.vector_gradients[uses[0]])
            pieces.stored[name] = total.reshape(-1, self.copies, *total.shape[1:]).sum(dim=1)
        return pieces

    def _add_matrix(self, pieces: _Pieces, name: str, captured: Captured, tape: Tape, uses: list[int]) -> None:
        plain = [
            matrix_gradients.untied(tape.matrix_uses[i], captured.inputs[i], captured.output_gradients[i], self.copies)
            for i in uses
        ]
        first, given, gradient, copies = plain[0]
        costs = matrix_gradients.GPU_COSTS if gradient.is_cuda else matrix_gradients.CPU_COSTS
        shape = matrix_gradients.shape_of(first.module, gradient, copies, len(uses))
        has_kernel = len(uses) == 1 and _has_kernel(gradient) and _has_one_group(first.module)
        method = GradientMethod.GRAM
        if not isinstance(first.module, nn.Embedding):
            method = matrix_gradients.cheapest_method(
                shape, costs, itemsize=gradient.element_size(), has_kernel=has_kernel
            )
        if has_kernel and method is not GradientMethod.GRAM:
            # In the graph, so that these are computed in the memory layout the kernel reads.
            convolved = matrix_gradients.Convolved(
                images=given.contiguous(memory_format=torch.channels_last),
                output_gradients=gradient.contiguous(memory_format=torch.channels_last),
                geometry=_geometry(first.module, padded=first.padded),
                copies=copies,
            )
            arguments = _arguments(convolved, self.precision)
            if method is GradientMethod.STORED:
                pieces.stored[name], pieces.squares[name] = convolution_record_gradients(*arguments)
            else:
                pieces.convolved[name], pieces.squares[name] = convolved, convolution_record_squares(*arguments)
            return
        if (
            method is GradientMethod.STORED
            and len(uses) == 1
            and not gradient.is_cuda
            and isinstance(first.module, nn.Conv2d)
        ):
            pieces.stored[name] = matrix_gradients.stored_convolution(first, given, gradient, copies)
            return
        sides = matrix_gradients.joined(
            [matrix_gradients.sides_of(use, _finite(given), gradient, copies) for use, given, gradient, copies in plain]
        )
        if method is GradientMethod.STORED:
            pieces.stored[name] = matrix_gradients.stored_gradients(sides)
        else:
            pieces.sides[name] = sides

    def _sum(self, pieces: _Pieces, norms: Tensor, factors: Tensor, compiled: bool) -> Gradients:
        if not compiled:
            blank_broken(pieces.stored, norms)
        gradients: Gradients = {}
        for name, parameter in self.trainable().items():
            if name in pieces.stored:
                stored = pieces.stored[name]
                total = _masked_sum(stored, factors) if compiled else weighted_sum(stored, factors)
            elif name in pieces.sides:
                total = matrix_gradients.weighted_gram(pieces.sides[name], factors, parameter.shape[0])
            elif name in pieces.convolved:
                images, output_gradients, *rest = _arguments(pieces.convolved[name], self.precision)
                total = convolution_weighted_sum(images, output_gradients, factors, *rest)
            else:
                # Trainable, but not used by this forward pass.
                total = torch.zeros_like(parameter, dtype=torch.float64)
            gradients[name] = matrix_gradients.as_parameter(total, parameter)
        return gradients


def _upper_norms(pieces: _Pieces, healthy: Tensor) -> Tensor:
    """Upper bounds on the norms of what will be summed, which also bound the terms that cancel in it."""
    norms, scales = pieces.norms()
    if scales is not None:
        norms = (norms.square() + _GRAM_ROUNDING * scales.square()).sqrt()
        norms = torch.maximum(norms, scales / LARGEST_CANCELLATION)
    return torch.where(healthy, norms * (1 + NORM_ROUNDING), torch.inf)


def _arguments(convolved: matrix_gradients.Convolved, precision: str) -> tuple[Tensor, Tensor, list[int], int, bool]:
    geometry = list(convolved.geometry)
    return convolved.images, convolved.output_gradients, geometry, convolved.copies, precision == "tf32"


def _masked_sum(stored: Tensor, factors: Tensor) -> Tensor:
    """The weighted sum in a form that compiles to one pass. A factor of 0 leaves a record out whatever it holds."""
    weights = factors.reshape(-1, *[1] * (stored.ndim - 1))
    return torch.where(weights > 0, stored * weights, 0.0).sum(dim=0)


def _finite(given: Tensor) -> Tensor:
    """A layer's input without NaN and infinity, which would spoil a product over all records: zero times NaN is NaN.

    The record they belong to is recognised by its loss and its output gradients, and is left out.
    """
    return torch.nan_to_num(given, 0.0, 0.0, 0.0) if given.is_floating_point() else given


def _has_kernel(gradient: Tensor) -> bool:
    return convolution_kernels.AVAILABLE and gradient.is_cuda and gradient.dtype in (torch.float32, torch.bfloat16)


def _has_one_group(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d) and module.groups == 1


def _geometry(module: nn.Module, *, padded: bool) -> tuple[int, ...]:
    if not isinstance(module, nn.Conv2d):
        raise TypeError(f"{type(module).__name__} has no kernel")
    padding = (0, 0) if padded or isinstance(module.padding, str) else module.padding
    return (*module.kernel_size, *module.stride, *padding, *module.dilation)


def _positions_by_name(names: list[str]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        positions.setdefault(name, []).append(index)
    return positions
