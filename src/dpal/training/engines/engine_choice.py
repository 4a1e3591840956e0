"""Which engine a model gets: one by name, or the fastest that covers it and agrees with a plain loop."""

import logging
from dataclasses import replace

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage] (all batch norms derive from it)

from dpal.errors import DpalError, InvalidArgument, MixesRecords, is_out_of_memory
from dpal.privacy import checks
from dpal.training.batches import Batch, LossFunction, record_count, rows
from dpal.training.engines.engine import ClippingEngine, NotCoveredError
from dpal.training.engines.engine_checks import cleaned, refuse_mixing, require_agreement, uneven_weights
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.opacus_engine import OpacusEngine
from dpal.training.engines.vmap_engine import VmapEngine
from dpal.training.settings import AUTOMATIC, require_precision

ENGINES: dict[str, type[ClippingEngine]] = {engine.name: engine for engine in (FusedEngine, OpacusEngine, VmapEngine)}

_ROWS_TO_SHOW_MIXING = 4

_log = logging.getLogger("dpal.training")


def engine_for(
    model: nn.Module,
    loss: LossFunction,
    *,
    max_grad_norm: float,
    sample: tuple[Batch, Tensor],
    name: str = AUTOMATIC,
    copies: int = 1,
    rows_per_unit: int = 1,
    precision: str = "float32",
) -> ClippingEngine:
    """The engine for a model. It must agree with a plain loop on `sample`, a batch of a few records or units.

    A single record cannot show mixing, so there must be at least two. They should be synthetic: a private record could
    decide which engine is used, and so how everyone's gradients are rounded. Where units have several rows, each of
    them with that many copies, the engine is also checked with weights that differ from row to row.
    """
    require_precision(precision)
    checks.positive("max_grad_norm", max_grad_norm)
    for argument, number in (("copies", copies), ("rows_per_unit", rows_per_unit)):
        if number < 1:
            raise InvalidArgument(argument, number, "at least 1")
    if name != AUTOMATIC and name not in ENGINES:
        raise InvalidArgument("engine", name, f"one of {', '.join((AUTOMATIC, *ENGINES))}")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise DpalError(f"The model {type(model).__name__} has no parameter that trains.")
    refuse_mixing_layers(model)
    batch, targets = cleaned(sample[0]), sample[1]
    together = copies * rows_per_unit
    count = record_count(batch) // together
    if count < 2:
        noun = "records" if rows_per_unit == 1 else "units"
        raise InvalidArgument(f"the number of {noun} in the sample", count, "at least 2")
    weights = uneven_weights(count, together, targets.device) if rows_per_unit > 1 else None
    # Mixing shows in a few rows, and the time of this check grows with the square of their number.
    few = slice(0, len(targets) if rows_per_unit == 1 else _ROWS_TO_SHOW_MIXING * copies)
    refuse_mixing(model, loss, rows(batch, few), targets[few])
    reasons: list[str] = []
    for kind in ENGINES.values() if name == AUTOMATIC else [ENGINES[name]]:
        try:
            engine = kind(model=model, loss=loss, max_grad_norm=max_grad_norm, copies=together, precision=precision)
            _check(engine, batch, targets, weights)
        except NotCoveredError as error:
            reasons.append(f"{kind.name}: {error}")
            continue
        _log.info("clipping engine: %s%s", kind.name, f" ({'; '.join(reasons)})" if reasons else "")
        return engine
    raise MixesRecords(
        "No engine can compute gradients by record for this model: " + "; ".join(reasons) + ". Remove layers that mix "
        "records, keep records in the first dimension, and return one loss per record."
    )


def refuse_mixing_layers(model: nn.Module) -> None:
    """Refuse batch norm by name, as the layer people forget. Other mixing is found by the check."""
    for layer_name, module in model.named_modules():
        if isinstance(module, _BatchNorm):
            raise MixesRecords(
                f"Layer {layer_name or 'model'} is a {type(module).__name__}. It mixes the records of a batch, so "
                "no gradient belongs to a single record. Use GroupNorm or LayerNorm instead, for instance "
                f"nn.GroupNorm({_norm_groups(module.num_features)}, {module.num_features}), or "
                "opacus.validators.ModuleValidator.fix(model)."
            )


def _norm_groups(channels: int) -> int:
    """The most groups, up to 32, that divide the channels and have at least two each: one alone is always 0."""
    return max((groups for groups in range(1, min(32, channels // 2) + 1) if channels % groups == 0), default=1)


def _check(engine: ClippingEngine, batch: Batch, targets: Tensor, weights: Tensor | None) -> None:
    """A model is not covered if anything fails, or if a result differs from that of single records."""
    eager = replace(engine, compiled=False) if isinstance(engine, FusedEngine) else engine
    try:
        require_agreement(eager, replace(eager, precision="float32"), batch, targets, weights)
        if isinstance(engine, FusedEngine) and isinstance(eager, FusedEngine):
            engine.learn_from(eager)
    except (NotCoveredError, DpalError):
        raise
    except Exception as error:
        if is_out_of_memory(error):
            # It says nothing of the model, and another engine would train another model on the same charge.
            raise
        # Only the type of the error: its text may quote a record.
        raise NotCoveredError(f"it fails with {type(error).__name__}") from error
