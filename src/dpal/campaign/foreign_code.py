"""Code in a campaign that is not dpal's: its import paths, so that certificates can name it."""

from collections.abc import Iterator
from typing import Any

from dpal.imports import import_path
from dpal.labels.oracles import Oracle, oracle_code
from dpal.models.encoder import Encoder
from dpal.models.registry import MODELS
from dpal.selection.acquisition import Acquisition
from dpal.selection.acquisition_checks import is_foreign

_TRUSTED = ("dpal", "torch")


def acquisition_name(acquisition: Acquisition) -> str:
    """What an acquisition function is recorded as: dpal's own by its name, any other by its import path."""
    return import_path(acquisition) if is_foreign(acquisition) else acquisition.name


def is_same_code(one: str, other: str) -> bool:
    """Whether two names mean the same code; a script's code has another module name once the script is imported."""
    if one == other or ":" not in one or ":" not in other:
        return one == other
    modules, names = zip(*(path.split(":", 1) for path in (one, other)), strict=True)
    return "__main__" in modules and names[0] == names[1]


def foreign_code(
    acquisition: Acquisition, model: Any, oracle: Oracle | None = None, encoder: Encoder | None = None
) -> tuple[str, ...]:
    """The import paths of an acquisition function, a model (a name, an import path, a module, a function), an oracle.

    With an encoder, the model is dpal's own head, and the encoder is what may be foreign.

    For a torch module made of others, these are the outermost ones that are neither torch's nor dpal's.
    """
    paths = [import_path(acquisition)] if is_foreign(acquisition) else []
    if oracle is not None and (own_oracle := oracle_code(oracle)) is not None:
        paths.append(own_oracle)
    if encoder is not None:
        paths += [path for path in encoder.code() if _package(path) not in _TRUSTED]
    elif isinstance(model, str):
        paths += [model] if model not in MODELS and _package(model) not in _TRUSTED else []
    elif hasattr(model, "children"):
        paths += _outermost(model, _TRUSTED)
    elif _package(import_path(model)) not in _TRUSTED:
        paths.append(import_path(model))
    return tuple(sorted(set(paths)))


def _outermost(module: Any, trusted: tuple[str, ...]) -> Iterator[str]:
    path = import_path(module)
    if _package(path) not in trusted:
        yield path
        return
    # dpal's text models are built on the library's.
    inside = (*trusted, "transformers") if _package(path) == "dpal" else trusted
    for child in module.children():
        yield from _outermost(child, inside)


def _package(path: str) -> str:
    return path.partition(":")[0].partition(".")[0]
