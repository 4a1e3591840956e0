"""What must hold before an engine is trusted with a model: no record affects another's loss or gradient.

Everything runs on a few records with slightly changed weights (a layer that starts at zero hides what comes before it),
and again with one record replaced: the results of the others must not change.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dpal.errors import DpalError, MixesRecords, is_out_of_memory
from dpal.training.batches import Batch, LossFunction, called, record_count, rows
from dpal.training.engines.clipping import Gradients
from dpal.training.engines.engine import ClippingEngine, NotCoveredError
from dpal.training.precision import tf32_allowed

# How far two computations of the same number may differ.
_CLOSE = 1e-3
_COARSE = 0.05
# The same arithmetic on the same record in a batch of the same size.
_SAME = 1e-5
_SEED = 20_240_815
_ROWS_TO_COMPARE = 4


def refuse_mixing(model: nn.Module, loss: LossFunction, batch: Batch, targets: Tensor) -> None:
    """Refuse a model in which a record's loss depends on other records, or which remembers records between calls.

    In both modes, since some layers mix in one of them only. Dropout is the same in every run.
    """
    for training in (True, False):
        with _moved_weights(model), modes_kept(model):
            model.train(training)
            _refuse_mixing_now(model, loss, batch, targets)


def _refuse_mixing_now(model: nn.Module, loss: LossFunction, batch: Batch, targets: Tensor) -> None:
    first, buffers = losses_of(model, loss, batch, targets)
    if first.shape != targets.shape[:1]:
        raise DpalError(
            f"The loss of a batch of {len(targets)} has the shape {tuple(first.shape)}. It needs one value per record, "
            f"of shape ({len(targets)},)."
        )
    if not torch.isfinite(first).all():
        raise DpalError(
            "The loss of some records is NaN or infinite before training, although their inputs are finite."
        )
    for changed, place in replacements(batch):
        others, other_buffers = losses_of(model, loss, changed, targets)
        others[place] = first[place]
        if not torch.allclose(first, others, rtol=_SAME, atol=_SAME):
            raise MixesRecords(
                "The content of one record changes the loss of another: some layer mixes records, or records are not "
                "the first dimension. Normalise within a record instead (GroupNorm, LayerNorm)."
            )
        for name, value in buffers.items():
            if not torch.equal(torch.nan_to_num(value.double()), torch.nan_to_num(other_buffers[name].double())):
                raise MixesRecords(
                    f"The buffer {name} stores something about records (running statistics?) and would be published "
                    "with the model, without noise. Switch such statistics off, for instance with "
                    "track_running_stats=False."
                )
    _refuse_counting(model, loss, batch, targets)
    again, _ = losses_of(model, loss, batch, targets)
    if not torch.allclose(first, again, rtol=_SAME, atol=_SAME):
        raise MixesRecords("The model gives the same batch a different loss the second time: it stores records.")


def _refuse_counting(model: nn.Module, loss: LossFunction, batch: Batch, targets: Tensor) -> None:
    """Refuse a model in which the number of rows changes a record's loss, or is stored in a buffer.

    Losses are compared in prediction mode only, since dropout differs with the number of rows; and in float64 where the
    model allows it, since rounding differs too.
    """
    _, buffers = losses_of(model, loss, batch, targets)
    for count in range(1, len(targets)):
        _, fewer_buffers = losses_of(model, loss, rows(batch, slice(0, count)), targets[:count])
        for name, value in buffers.items():
            if not torch.equal(torch.nan_to_num(value.double()), torch.nan_to_num(fewer_buffers[name].double())):
                raise MixesRecords(
                    f"The buffer {name} depends on the number of records and would be published with the model, "
                    "without noise. Remove it."
                )
    if model.training:
        return
    try:
        with _in_float64(model):
            differs = _smaller_batch_that_differs(model, loss, _as_float64(batch), _as_float64(targets), _SAME)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        # Something in the model or its loss is float32 whatever the weights are.
        differs = _smaller_batch_that_differs(model, loss, batch, targets, _COARSE)
    if differs is not None:
        raise MixesRecords(
            f"A record has a different loss in a batch of {differs} than in one of {len(targets)}: some layer depends "
            "on the size of the batch. Normalise within a record instead (GroupNorm, LayerNorm)."
        )


def _smaller_batch_that_differs(
    model: nn.Module, loss: LossFunction, batch: Batch, targets: Tensor, close: float
) -> int | None:
    losses, _ = losses_of(model, loss, batch, targets)
    for count in range(1, len(targets)):
        fewer, _ = losses_of(model, loss, rows(batch, slice(0, count)), targets[:count])
        if not torch.allclose(losses[:count], fewer, rtol=close, atol=close):
            return count
    return None


def uneven_weights(units: int, rows: int, device: torch.device) -> Tensor:
    """A weight for every row of these units, no two alike within a unit, and none for a row of every second unit."""
    weights = torch.arange(1, rows + 1, dtype=torch.float32, device=device).repeat(units, 1)
    weights[1::2] = weights[1::2].flip(1)
    weights[1::2, -1] = 0.0
    return (weights / weights.sum(dim=1, keepdim=True)).flatten()


def require_agreement(
    engine: ClippingEngine, plain: ClippingEngine, batch: Batch, targets: Tensor, weights: Tensor | None = None
) -> None:
    """Compare clipped sums of an engine (`plain`: the same in float32) with a loop over single records or units.

    In float64: near ties of a max pool or ReLU are decided by rounding, and gradients jump there. Float32 kernels are
    compared coarsely, and those of lower precision only have to run.
    """
    model = engine.model
    # TF32, torch's default for convolutions on CUDA, would by itself make the two differ.
    with tf32_allowed(False), _moved_weights(model), modes_kept(model):
        # Without dropout, or two passes would differ at random. Opacus's hooks work in training mode only.
        plain.prepare_for_check()
        try:
            with _in_float64(model):
                _compare_all(plain, _as_float64(batch), _as_float64(targets), weights)
        except NotCoveredError:
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # Something in the model or its loss is float32 whatever the weights are.
            _compare_all(plain, batch, targets, weights)
        _compare(plain, [batch], targets, weights, _COARSE)
        engine.clipped_sum(batch, targets, weights=weights)


def _compare_all(plain: ClippingEngine, batch: Batch, targets: Tensor, weights: Tensor | None) -> None:
    if weights is not None:
        plain, batch, targets, weights = _with_fewer_rows(plain, batch, targets, weights)
    # Of a unit a single record is replaced, of a record all its copies.
    changed = replacements(batch, plain.copies if weights is None else 1)
    _compare(plain, [batch, *(other for other, _ in changed)], targets, weights, _CLOSE)
    if weights is not None:
        _require_separate_units(plain, batch, changed, targets, weights)


def _with_fewer_rows(
    plain: ClippingEngine, batch: Batch, targets: Tensor, weights: Tensor
) -> tuple[ClippingEngine, Batch, Tensor, Tensor]:
    """The same with the first few rows of each unit: float64 is slow. The coarse comparison has all rows."""
    if plain.copies <= _ROWS_TO_COMPARE:
        return plain, batch, targets, weights
    units = torch.arange(len(targets) // plain.copies, device=targets.device)
    index = (units[:, None] * plain.copies + torch.arange(_ROWS_TO_COMPARE, device=targets.device)).flatten()
    fewer = uneven_weights(len(units), _ROWS_TO_COMPARE, targets.device)
    return replace(plain, copies=_ROWS_TO_COMPARE), rows(batch, index), targets[index], fewer


def _require_separate_units(
    plain: ClippingEngine, batch: Batch, changed: list[tuple[Batch, slice]], targets: Tensor, weights: Tensor
) -> None:
    """Replacing a record of one unit must not change what the other units contribute."""
    units = torch.arange(len(targets) // plain.copies, device=targets.device)
    for other, place in changed:
        present = units != place.start // plain.copies
        before = plain.clipped_sum(batch, targets, present, weights).gradients
        after = plain.clipped_sum(other, targets, present, weights).gradients
        for name, total in before.items():
            scale = max(float(total.abs().max()), 1e-3 * plain.max_grad_norm)
            if not torch.allclose(total, after[name], rtol=0, atol=_SAME * scale):
                raise NotCoveredError(f"a record of one unit changes another unit's gradient of {name}")


def _compare(
    plain: ClippingEngine, batches: list[Batch], targets: Tensor, weights: Tensor | None, close: float
) -> None:
    for batch in batches:
        norms, gradients = _single_gradients(plain, batch, targets, weights)
        if not torch.isfinite(norms).all():
            continue
        measured = plain.record_norms(batch, targets, weights).double().cpu()
        if measured.shape != norms.shape or not torch.allclose(measured, norms, rtol=close, atol=1e-6):
            raise NotCoveredError("its gradient norms differ from those of single records")
        # Half of the records are clipped, so that swapping two of them would show.
        plain.max_grad_norm = max(float(norms.median()), 1e-6)
        sums = plain.clipped_sum(batch, targets, weights=weights).gradients
        _compare_sums(sums, norms, gradients, plain.max_grad_norm, close)


def _compare_sums(
    sums: Gradients, norms: Tensor, gradients: list[Gradients], max_grad_norm: float, close: float
) -> None:
    factors = (max_grad_norm / norms.clamp(min=max_grad_norm)).tolist()
    for name, total in sums.items():
        clipped = [factor * own[name].double() for factor, own in zip(factors, gradients, strict=True)]
        wanted = torch.stack(clipped).sum(dim=0)
        scale = max(float(wanted.abs().max()), 1e-3 * max_grad_norm)
        if not torch.allclose(total.double(), wanted, rtol=0, atol=10 * close * scale):
            raise NotCoveredError(f"its gradient of {name} differs from that of single records")


def _single_gradients(
    engine: ClippingEngine, batch: Batch, targets: Tensor, weights: Tensor | None
) -> tuple[Tensor, list[Gradients]]:
    """The norm and gradients of every record or unit, by plain autograd, one at a time."""
    trainable = engine.trainable()
    by_record: list[Gradients] = []
    for start in range(0, record_count(batch), engine.copies):
        record = slice(start, start + engine.copies)
        with torch.enable_grad():
            losses = engine.loss(called(engine.model, rows(batch, record)), targets[record])
            loss = losses.sum() / engine.copies if weights is None else (losses * weights[record]).sum()
        gradients = torch.autograd.grad(loss, list(trainable.values()), allow_unused=True, materialize_grads=True)
        by_record.append(dict(zip(trainable, gradients, strict=True)))
    squares = [sum(float(gradient.double().square().sum()) for gradient in own.values()) for own in by_record]
    return torch.tensor(squares, dtype=torch.float64, device="cpu").sqrt(), by_record


def replacements(batch: Batch, copies: int = 1) -> list[tuple[Batch, slice]]:
    """The batch with its first or last record turned into another one, or half blanked; and where that record is."""
    count = record_count(batch)
    changed: list[tuple[Batch, slice]] = []
    for place in (slice(0, copies), slice(count - copies, count)):
        for how in (_turned, _half_blank):
            if isinstance(batch, Tensor):
                changed.append((_changed(batch, place, how), place))
            else:
                changed.append(({name: _changed(array, place, how) for name, array in batch.items()}, place))
    return changed


def _changed(array: Tensor, place: slice, how: Callable[[Tensor], Tensor]) -> Tensor:
    copy = array.clone()
    copy[place] = how(array[place])
    return copy


def _turned(record: Tensor) -> Tensor:
    if not record.is_floating_point():
        return record.flip(-1)
    # A ramp is added, so that it is not a multiple of the original.
    return record.flip(-1) * -1.3 + torch.linspace(0.2, 1.2, record.shape[-1], device=record.device).to(record)


def _half_blank(record: Tensor) -> Tensor:
    # Lengths and masks change with it. A whole blank would leave ties everywhere, where gradients are arbitrary.
    copy = _turned(record)
    copy[..., : (record.shape[-1] + 1) // 2] = 0
    return copy


def cleaned(batch: Batch) -> Batch:
    """The batch with 0 in place of values that are not finite, which would hide every difference."""
    if isinstance(batch, Tensor):
        return torch.nan_to_num(batch, 0.0, 0.0, 0.0) if batch.is_floating_point() else batch
    return {
        name: torch.nan_to_num(array, 0.0, 0.0, 0.0) if array.is_floating_point() else array
        for name, array in batch.items()
    }


def losses_of(model: nn.Module, loss: LossFunction, batch: Batch, targets: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The losses, and the buffers as the forward pass leaves them. The model's own buffers are put back."""
    devices = [targets.device] if targets.is_cuda else []
    with buffers_kept(model), torch.no_grad(), torch.random.fork_rng(devices=devices):
        torch.manual_seed(_SEED)
        losses = loss(called(model, batch), targets)
        return losses, {name: each.detach().clone() for name, each in model.named_buffers()}


@contextmanager
def _moved_weights(model: nn.Module) -> Generator[None]:
    """Inside, trainable parameters are slightly changed, the same way each time."""
    kept = {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}
    generator = torch.Generator().manual_seed(_SEED)
    try:
        with torch.no_grad():
            for name, each in model.named_parameters():
                if name in kept:
                    step = torch.randn(each.shape, generator=generator, device="cpu").to(each)
                    each.add_(0.5 * step * (kept[name].float().std(unbiased=False) + 0.1).to(each))
        yield
    finally:
        with torch.no_grad():
            for name, each in model.named_parameters():
                if name in kept:
                    each.copy_(kept[name])


@contextmanager
def _in_float64(model: nn.Module) -> Generator[None]:
    """Inside, parameters and buffers are float64, and have no gradients."""
    tensors = [each for each in (*model.parameters(), *model.buffers()) if each.is_floating_point()]
    kept = [(each, each.data, each.grad) for each in tensors]
    try:
        for each in tensors:
            each.grad = None
            each.data = each.data.double()
        yield
    finally:
        for each, data, gradient in kept:
            each.grad = None
            each.data = data
            each.grad = gradient


def _as_float64(batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.double() if batch.is_floating_point() else batch
    return {name: _as_float64(array) for name, array in batch.items()}


@contextmanager
def modes_kept(model: nn.Module) -> Generator[None]:
    """Afterwards every layer is in the training or evaluation mode it was in before."""
    modes = {module: module.training for module in model.modules()}
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def buffers_kept(model: nn.Module) -> Generator[None]:
    """Afterwards buffers are as before, even where a forward pass replaced one with another tensor."""
    kept = [(module, dict(module.named_buffers(recurse=False))) for module in model.modules()]
    values = [{name: each.detach().clone() for name, each in buffers.items()} for _, buffers in kept]
    try:
        yield
    finally:
        for (module, buffers), before in zip(kept, values, strict=True):
            for name, each in buffers.items():
                each.data = before[name]
                setattr(module, name, each)
            for name in dict(module.named_buffers(recurse=False)).keys() - buffers.keys():
                setattr(module, name, None)
