"""Weights in safetensors files: numbers and names only, nothing that can be executed."""

from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, load_file, save, save_file
from torch import Tensor, nn

from dpal.errors import DamagedCampaign
from dpal.training.averaging import WeightAverage

_WEIGHTS, _AVERAGE = "weights/", "average/"


def save_weights(path: Path, model: nn.Module, average: WeightAverage | None) -> None:
    """Save the model's state and that of its average, if any. Nothing else, which could leak."""
    write_tensors(path, _tensors(model, average))


def weights_as_bytes(model: nn.Module, average: WeightAverage | None) -> bytes:
    """What `save_weights` writes: always the same bytes for the same weights."""
    return save(_tensors(model, average))


def _tensors(model: nn.Module, average: WeightAverage | None) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    seen: set[tuple[int, tuple[int, ...], tuple[int, ...]]] = set()
    for name, value in model.state_dict().items():
        # Shared weights have several names; the file holds them once. A part of another tensor is a tensor of its own.
        if value.numel() and _place(value) in seen:
            continue
        seen.add(_place(value))
        tensors[_WEIGHTS + name] = value.detach().cpu().contiguous().clone()
    if average is not None:
        tensors |= {_AVERAGE + name: value.detach().cpu().contiguous() for name, value in average.state_dict().items()}
    return tensors


def _place(value: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return value.data_ptr(), tuple(value.shape), tuple(value.stride())


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file. The library's own error for a full disk becomes an OSError."""
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from error


def load_weights(path: Path, model: nn.Module, average: WeightAverage | None) -> None:
    """Load weights into a model of the same shape. A damaged file, or one of another model, is refused."""
    _take_weights(lambda: load_file(path), str(path), model, average)


def load_weights_from(content: bytes, model: nn.Module, average: WeightAverage | None) -> None:
    """Load what `weights_as_bytes` gave."""
    _take_weights(lambda: load(content), "What another process sent", model, average)


def _take_weights(
    read: Callable[[], dict[str, Tensor]], path: str, model: nn.Module, average: WeightAverage | None
) -> None:
    try:
        tensors = read()
        weights = {name.removeprefix(_WEIGHTS): value for name, value in tensors.items() if name.startswith(_WEIGHTS)}
        missing, unexpected = model.load_state_dict(weights, strict=False)
        own = model.state_dict()
        shared = {_place(own[name]) for name in weights if name in own}
        lost = [name for name in missing if _place(own[name]) not in shared]
        if lost or unexpected:
            raise DamagedCampaign(
                f"{path} belongs to another model: {len(lost)} parameters are missing and {len(unexpected)} are "
                f"unknown, such as {(*lost, *unexpected)[0]}. Use the model that the campaign was made with."
            )
        if average is not None:
            kept = {name.removeprefix(_AVERAGE): value for name, value in tensors.items() if name.startswith(_AVERAGE)}
            if kept:
                average.load_state_dict(kept)
    except (SafetensorError, OSError, RuntimeError, KeyError) as error:
        raise DamagedCampaign(
            f"{path} cannot be loaded ({type(error).__name__}): it is damaged, or belongs to another model. Restore it "
            "from a backup. Nothing was changed."
        ) from error
