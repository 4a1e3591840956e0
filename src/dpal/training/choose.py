"""Which engine a model gets: by name, or the fastest that covers it and agrees with a plain loop."""

import logging
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage] (all batch norms derive from it)
from torch.nn.modules.dropout import _DropoutNd  # pyright: ignore[reportPrivateUsage] (all dropouts derive from it)

from dpal.errors import InvalidArgument, MixesRecords
from dpal.training.capture import NotCoveredError
from dpal.training.engine import PRECISIONS, Batch, ClippingEngine, LossFunction, called, record_count, rows
from dpal.training.fused import FusedEngine
from dpal.training.opacus_engine import OpacusEngine
from dpal.training.vmap_engine import VmapEngine

ENGINES: dict[str, type[ClippingEngine]] = {engine.name: engine for engine in (FusedEngine, OpacusEngine, VmapEngine)}
AUTOMATIC = "auto"
# Records that the check looks at, and how far two ways to the same norm may lie apart.
_CHECKED_RECORDS = 3
_CLOSE = 1e-3

_log = logging.getLogger("dpal.training")


def engine_for(
    model: nn.Module,
    loss: LossFunction,
    *,
    max_grad_norm: float,
    sample: tuple[Batch, Tensor],
    name: str = AUTOMATIC,
    copies: int = 1,
    precision: str = "float32",
) -> ClippingEngine:
    """The engine for a model. `sample` is a batch of a few records; on it the engine must agree with a plain loop."""
    if precision not in PRECISIONS:
        raise InvalidArgument("precision", precision, f"one of {', '.join(PRECISIONS)}")
    if not max_grad_norm > 0:
        raise InvalidArgument("max_grad_norm", max_grad_norm, "a number above 0")
    if copies < 1:
        raise InvalidArgument("copies", copies, "at least 1")
    if name != AUTOMATIC and name not in ENGINES:
        raise InvalidArgument("engine", name, f"one of {', '.join((AUTOMATIC, *ENGINES))}")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InvalidArgument("the model", type(model).__name__, "one with at least one parameter that trains")
    refuse_mixing_layers(model)
    _refuse_mixing_outputs(model, loss, *sample)
    reasons: list[str] = []
    for kind in ENGINES.values() if name == AUTOMATIC else [ENGINES[name]]:
        try:
            engine = kind(model=model, loss=loss, max_grad_norm=max_grad_norm, copies=copies, precision=precision)
            _check(engine, *sample)
        except NotCoveredError as error:
            reasons.append(f"{kind.name}: {error}")
            continue
        _log.info("clipping engine: %s%s", kind.name, f" ({'; '.join(reasons)})" if reasons else "")
        return engine
    raise MixesRecords(
        "No engine gives this model gradients by record: " + "; ".join(reasons) + ". Layers that mix records must go; "
        "records must be the first dimension; the loss must return one value a record."
    )


def refuse_mixing_layers(model: nn.Module) -> None:
    """Batch norm is the layer people forget. It is refused by name; other mixing is found by the check."""
    for layer_name, module in model.named_modules():
        if isinstance(module, _BatchNorm):
            raise MixesRecords(
                f"The layer {layer_name or 'model'} is a {type(module).__name__}: it mixes the records of a batch, so "
                "no gradient belongs to one record. Use GroupNorm or LayerNorm instead, for instance "
                f"nn.GroupNorm(32, {module.num_features}), or opacus.validators.ModuleValidator.fix(model)."
            )


def _refuse_mixing_outputs(model: nn.Module, loss: LossFunction, batch: Batch, targets: Tensor) -> None:
    """A record's loss must be the same in company and alone."""
    batch, targets = rows(batch, slice(0, _CHECKED_RECORDS)), targets[:_CHECKED_RECORDS]
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            together = loss(called(model, batch), targets)
            alone = [loss(called(model, rows(batch, slice(i, i + 1))), targets[i : i + 1]) for i in range(len(targets))]
    finally:
        model.train(was_training)
    if together.shape != targets.shape[:1]:
        found = f"a tensor of shape {tuple(together.shape)}"
        raise InvalidArgument("the loss of a batch", found, f"one value a record, of shape ({len(targets)},)")
    if alone and not torch.allclose(together, torch.cat(alone), rtol=_CLOSE, atol=1e-4, equal_nan=True):
        raise MixesRecords(
            "The model gives a record another loss in a batch than alone: some layer mixes records, or they are not "
            "the first dimension. Remove it; normalise within a record (GroupNorm, LayerNorm) instead."
        )


def _check(engine: ClippingEngine, batch: Batch, targets: Tensor) -> None:
    """Compare the engine's norms with those of single records; what differs is not covered, whatever the reason."""
    count = min(record_count(batch) // engine.copies, _CHECKED_RECORDS)
    if count == 0:
        return
    few = slice(0, count * engine.copies)
    batch, targets = rows(batch, few), targets[few]
    options = {"precision": "float32", **({"compiled": False} if isinstance(engine, FusedEngine) else {})}
    plain = replace(engine, **options)
    modes = {module: module.training for module in engine.model.modules()}
    # Without dropout, or two passes would differ by chance. Opacus's hooks work in training mode only.
    engine.model.eval()
    if isinstance(engine, OpacusEngine):
        for module in modes:
            module.training = not isinstance(module, _DropoutNd)
    try:
        found = plain.record_norms(batch, targets)
        wanted = torch.stack(
            [
                single_norm(engine, rows(batch, slice(i, i + engine.copies)), targets[i : i + engine.copies])
                for i in range(0, count * engine.copies, engine.copies)
            ]
        )
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise NotCoveredError(str(error).split("\n")[0]) from error
    finally:
        for module, mode in modes.items():
            module.training = mode
    if not torch.allclose(found.double(), wanted, rtol=_CLOSE, atol=1e-6, equal_nan=True):
        raise NotCoveredError("its gradient norms differ from those of single records")


def single_norm(engine: ClippingEngine, record: Batch, targets: Tensor) -> Tensor:
    """The gradient norm of one record by itself, the plain way."""
    parameters = list(engine.trainable().values())
    with torch.enable_grad():
        loss = engine.loss(called(engine.model, record), targets).sum() / engine.copies
    gradients = cast("tuple[Tensor | None, ...]", torch.autograd.grad(loss, parameters, allow_unused=True))
    squares = [gradient.double().square().sum() for gradient in gradients if gradient is not None]
    return torch.stack(squares).sum().sqrt()
