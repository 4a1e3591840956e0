"""One forward and one backward pass that capture, for every trainable layer, what its gradient is made of.

For a matrix (the weight of a convolution, a linear layer or an embedding), that is its input and the gradient at its
output: a record's gradient is a sum over positions of products of the two. A vector (a bias, the weight and bias of a
norm) is copied for each record, so that the backward pass itself returns one gradient per record. The gradient of a
whole matrix is never computed here.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpal.training.batches import Batch, LossFunction, called_with, record_count
from dpal.training.engines import group_norm_kernels
from dpal.training.engines.custom_operators import RecordGroupNorm
from dpal.training.engines.engine import NotCoveredError, combined_loss
from dpal.training.engines.tied_layers import TiedConvolution, TiedGroupNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixUse:
    """One use of a matrix in the forward pass: public structure, no values."""

    parameter: str
    module: nn.Module
    # The captured input is padded already: the layer itself must not pad again.
    padded: bool = False


@dataclass(slots=True, kw_only=True)
class Captured:
    """Losses by row; for each matrix use its input and output gradient; for each vector use its gradient by row."""

    losses: Tensor
    inputs: list[Tensor]
    output_gradients: list[Tensor]
    vector_gradients: list[Tensor]


@dataclass(slots=True, kw_only=True)
class Tape:
    """What the patched layers record during one forward pass."""

    rows: int
    # Whether layers pass on copies of their outputs, because later code changes them in place.
    copies_outputs: bool
    matrix_uses: list[MatrixUse] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    input_versions: list[int] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    output_versions: list[int] = field(default_factory=list)
    norm_names: list[tuple[str, str]] = field(default_factory=list)
    norm_inputs: list[Tensor] = field(default_factory=list)
    norm_outputs: list[Tensor] = field(default_factory=list)
    norm_statistics: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    output_versions_of_norms: list[int] = field(default_factory=list)
    vector_names: list[str] = field(default_factory=list)
    vectors: list[Tensor] = field(default_factory=list)

    def matrix(
        self, parameter: str, module: nn.Module, given: Tensor, output: Tensor, *, padded: bool = False
    ) -> Tensor:
        self.check_rows(parameter, given.shape[0])
        is_leaf = _made_leaf(output)
        if output.is_cuda and output.ndim == 4:
            # The layer's own backward pass and our kernels read gradients with channels last.
            output.register_hook(_channels_last)
        self.matrix_uses.append(MatrixUse(parameter=parameter, module=module, padded=padded))
        self.inputs.append(given.detach())
        self.input_versions.append(given._version)
        self.outputs.append(output)
        self.output_versions.append(output._version)
        # On CUDA the compiler removes the copy, and chooses a better memory layout because of it.
        return output.clone() if self.copies_outputs or is_leaf or output.is_cuda else output

    def norm(self, parameters: tuple[str, str], given: Tensor, output: Tensor) -> Tensor:
        self.check_rows(parameters[0], given.shape[0])
        is_leaf = _made_leaf(output)
        self.norm_names.append(parameters)
        self.norm_inputs.append(given.detach())
        self.norm_outputs.append(output)
        self.output_versions_of_norms.append(output._version)
        return output.clone() if self.copies_outputs or is_leaf else output

    def outputs_changed(self) -> bool:
        """Whether some output was changed after its layer: its gradient would be that of the changed tensor."""
        outputs = [*self.outputs, *self.norm_outputs]
        versions = [*self.output_versions, *self.output_versions_of_norms]
        return any(output._version != version for output, version in zip(outputs, versions, strict=True))

    def check_rows(self, parameter: str, rows: int) -> None:
        if rows != self.rows:
            raise NotCoveredError(
                f"the layer of {parameter} gets {rows} rows but the batch has {self.rows}: "
                "records must be the first dimension everywhere"
            )

    def check_inputs(self) -> None:
        """Refuse a model that changes a layer's input in place after the layer: the tape holds the changed one."""
        for use, given, version in zip(self.matrix_uses, self.inputs, self.input_versions, strict=True):
            if given._version != version:
                raise NotCoveredError(f"the input of the layer of {use.parameter} is changed in place after it")

    def vector(self, parameter: str, value: Tensor, shape: tuple[int, ...]) -> Tensor:
        """One copy of the vector per row, shaped to broadcast. In float32, so that its gradient is float32 too."""
        copies = value.detach().float().expand(self.rows, *value.shape).clone().requires_grad_()
        self.vector_names.append(parameter)
        self.vectors.append(copies)
        return copies.reshape(self.rows, *shape)


def _made_leaf(output: Tensor) -> bool:
    """Request an output's gradient. True if nothing before it trains: such a tensor cannot be changed in place."""
    if output.requires_grad:
        return False
    output.requires_grad_()
    return True


def _channels_last(gradient: Tensor) -> Tensor:
    return gradient.contiguous(memory_format=torch.channels_last)


class Capture:
    """Patches the layers that hold trainable parameters while a forward pass runs."""

    def __init__(self, model: nn.Module, loss: LossFunction) -> None:
        self.model, self.loss = model, loss
        self.copies_outputs = False
        self.names = {parameter: name for name, parameter in model.named_parameters() if parameter.requires_grad}
        self.layers = [module for module in model.modules() if self._own_names(module)]
        for module in self.layers:
            if _patch_for(module) is None:
                raise NotCoveredError(f"no rule for the layer {_name_of(model, module)} ({type(module).__name__})")
            if "forward" in vars(module):
                raise NotCoveredError(f"the forward of the layer {_name_of(model, module)} was replaced")
            _check_options(_name_of(model, module), module)
            if isinstance(module, TiedConvolution):
                module.plain()

    def _own_names(self, module: nn.Module) -> dict[str, str]:
        """The trainable parameters that the module itself holds, by attribute."""
        own = module.named_parameters(recurse=False, remove_duplicate=False)
        return {key: self.names[value] for key, value in own if value in self.names}

    def __call__(
        self, state: dict[str, Tensor], batch: Batch, targets: Tensor, copies: int, weights: Tensor | None = None
    ) -> tuple[Captured, Tape]:
        """Run the model with the given parameters and buffers; the gradients are those of the combined loss."""
        tape = Tape(rows=record_count(batch), copies_outputs=self.copies_outputs)
        with torch.enable_grad(), self._patched(tape):
            outputs = called_with(self.model, state, *_arguments(batch))
            tape.check_inputs()
            losses = self.loss(outputs, targets)
        if tape.outputs_changed():
            self.copies_outputs = True
            return self(state, batch, targets, copies, weights)
        if losses.shape != (tape.rows,):
            raise NotCoveredError(f"the loss has the shape {tuple(losses.shape)}, not one value per record")
        wanted = [*tape.outputs, *tape.norm_outputs, *tape.vectors]
        with torch.enable_grad():
            total = combined_loss(losses, copies, weights)
        computed = cast("tuple[Tensor | None, ...]", torch.autograd.grad(total, wanted, allow_unused=True))
        gradients = [
            torch.zeros_like(tensor) if gradient is None else gradient
            for tensor, gradient in zip(wanted, computed, strict=True)
        ]
        matrices, norms = len(tape.outputs), len(tape.norm_outputs)
        vectors = gradients[matrices + norms :]
        for index, names in enumerate(tape.norm_names):
            tape.vector_names.extend(names)
            vectors.extend(_norm_gradients(tape, index, gradients[matrices + index]))
        captured = Captured(
            losses=losses.detach(),
            inputs=tape.inputs,
            output_gradients=gradients[:matrices],
            vector_gradients=vectors,
        )
        return captured, tape

    @contextmanager
    def _patched(self, tape: Tape) -> Generator[None]:
        for module in self.layers:
            # An instance attribute overrides the class's method. Deleting it restores the method.
            module.forward = _bound(module, self._own_names(module), tape)
        try:
            yield
        finally:
            for module in self.layers:
                del module.forward


def _arguments(batch: Batch) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((batch,), {}) if isinstance(batch, Tensor) else ((), dict(batch))


def _bound(module: nn.Module, own: dict[str, str], tape: Tape) -> Callable[[Tensor], Tensor]:
    patch = _patch_for(module)
    if patch is None:
        raise NotCoveredError(f"no rule for {type(module).__name__}")

    def forward(input: Tensor) -> Tensor:  # noqa: A002 (torch's name, which callers may use)
        return patch(module, own, tape, input)

    return forward


def _name_of(model: nn.Module, wanted: nn.Module) -> str:
    return next((name for name, module in model.named_modules() if module is wanted), "model") or "model"


def _check_options(name: str, module: nn.Module) -> None:
    if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.scale_grad_by_freq or module.sparse):
        raise NotCoveredError(f"the embedding {name} uses max_norm, scale_grad_by_freq or sparse")


def _with_bias(module: Any, own: dict[str, str], tape: Tape, output: Tensor, shape: tuple[int, ...]) -> Tensor:
    if module.bias is None:
        return output
    if "bias" not in own:
        return output + module.bias.reshape(shape)
    return (output + tape.vector(own["bias"], module.bias, shape)).to(output.dtype)


def _linear(module: nn.Linear, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    output = functional.linear(given, module.weight)
    if "weight" in own:
        output = tape.matrix(own["weight"], module, given, output)
    return _with_bias(module, own, tape, output, (*[1] * (output.ndim - 2), module.out_features))


def _convolution(module: nn.Conv2d, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    padding = explicit_padding(module)
    padded = padding is not None
    if padding is not None:
        mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
        given = functional.pad(given, padding, mode=mode)
    output = functional.conv2d(
        given, module.weight, None, module.stride, 0 if padded else module.padding, module.dilation, module.groups
    )
    if "weight" in own:
        output = tape.matrix(own["weight"], module, given, output, padded=padded)
    return _with_bias(module, own, tape, output, (module.out_channels, 1, 1))


def _tied_convolution(module: TiedConvolution, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    if own.keys() != {"weight"}:
        raise NotCoveredError(f"{type(module).__name__} has trainable parameters other than its weight")
    output = functional.conv2d(given, module.filters(), padding=1)
    return tape.matrix(own["weight"], module, given, output)


def explicit_padding(module: nn.Conv2d) -> tuple[int, ...] | None:
    """Padding to apply before the convolution, unless the layer pads with zeros on both sides equally."""
    if module.padding_mode == "zeros" and not isinstance(module.padding, str):
        return None
    return tuple(vars(module)["_reversed_padding_repeated_twice"])  # torch's name for the order of F.pad


def _embedding(module: nn.Embedding, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    output = functional.embedding(given, module.weight, module.padding_idx)
    return tape.matrix(own["weight"], module, given, output)


def _group_norm(module: nn.GroupNorm, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    if not given.is_cuda and own.keys() == {"weight", "bias"}:
        # Without the compiler, which fuses what follows below, torch's own kernels are faster.
        return _group_norm_captured(module, own, tape, given)
    if own.keys() == {"weight", "bias"} and group_norm_kernels.covers(given, module.num_groups):
        tape.check_rows(own["weight"], given.shape[0])
        weight = tape.vector(own["weight"], module.weight, (module.num_channels,))
        bias = tape.vector(own["bias"], module.bias, (module.num_channels,))
        return cast("Tensor", RecordGroupNorm.apply(given, weight, bias, module.num_groups, module.eps))
    plain = functional.group_norm(given, module.num_groups, None, None, module.eps)
    if given.ndim == 4 and given.is_cuda:
        # Torch's own kernel returns channels first. Convolutions and our kernels are faster with channels last.
        plain = plain.contiguous(memory_format=torch.channels_last)
    return _affine(module, own, tape, plain, (module.num_channels, *[1] * (given.ndim - 2)))


def _tied_group_norm(module: TiedGroupNorm, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    tape.check_rows(next(iter(own.values())), given.shape[0])
    rows = {
        name: (tape.vector(own[name], value, (len(value),)) if name in own else value.expand(tape.rows, -1))
        for name, value in (("weight", module.weight), ("bias", module.bias))
    }
    weight, bias = (vector.repeat_interleave(module.ties, dim=1) for vector in rows.values())
    if group_norm_kernels.covers(given, module.groups):
        return cast("Tensor", RecordGroupNorm.apply(given, weight, bias, module.groups, module.eps))
    plain = functional.group_norm(given, module.groups, None, None, module.eps)
    shape = (*weight.shape, *[1] * (given.ndim - 2))
    return (plain * weight.reshape(shape) + bias.reshape(shape)).to(plain.dtype)


def _group_norm_captured(module: nn.GroupNorm, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    """The whole norm at once. Its gradients by record are computed from input, statistics and output gradient."""
    rows, channels, groups = given.shape[0], given.shape[1], module.num_groups
    positions = given.numel() // (rows * channels)
    output, mean, scale = torch.native_group_norm(
        given.contiguous(), module.weight, module.bias, rows, channels, positions, groups, module.eps
    )
    output = tape.norm((own["weight"], own["bias"]), given, output)
    tape.norm_statistics.append((mean.detach(), scale.detach()))
    return output


def _norm_gradients(tape: Tape, index: int, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Σ over positions of gradient · normalised input, and of gradient: for weight and bias, by row and channel."""
    given, (mean, scale) = tape.norm_inputs[index], tape.norm_statistics[index]
    rows, channels = given.shape[:2]
    flat, wide = gradient.reshape(rows, channels, -1).float(), given.reshape(rows, channels, -1).float()
    sums = flat.sum(dim=2)
    products = torch.linalg.vecdot(flat, wide)
    per_group = channels // mean.shape[1]
    mean, scale = (value.float().repeat_interleave(per_group, dim=1) for value in (mean, scale))
    return scale * (products - mean * sums), sums


def _layer_norm(module: nn.LayerNorm, own: dict[str, str], tape: Tape, given: Tensor) -> Tensor:
    plain = functional.layer_norm(given, module.normalized_shape, None, None, module.eps)
    own_dims = len(module.normalized_shape)
    return _affine(module, own, tape, plain, (*[1] * (given.ndim - 1 - own_dims), *module.normalized_shape))


def _affine(module: Any, own: dict[str, str], tape: Tape, plain: Tensor, shape: tuple[int, ...]) -> Tensor:
    output = plain
    if module.weight is not None:
        weight = tape.vector(own["weight"], module.weight, shape) if "weight" in own else module.weight.reshape(shape)
        output = output * weight
    if module.bias is not None:
        bias = tape.vector(own["bias"], module.bias, shape) if "bias" in own else module.bias.reshape(shape)
        output = output + bias
    return output.to(plain.dtype)


_PATCHES: dict[type[nn.Module], Callable[[Any, dict[str, str], Tape, Tensor], Tensor]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.Embedding: _embedding,
    nn.GroupNorm: _group_norm,
    nn.LayerNorm: _layer_norm,
    TiedGroupNorm: _tied_group_norm,
}


def _patch_for(module: nn.Module) -> Callable[[Any, dict[str, str], Tape, Tensor], Tensor] | None:
    # A subclass of a known layer may compute something else.
    if isinstance(module, TiedConvolution) and type(module).forward is TiedConvolution.forward:
        return _tied_convolution
    return _PATCHES.get(type(module))
