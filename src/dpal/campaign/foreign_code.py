"""Code that takes part in a campaign and is not dpal's: its import paths, so that certificates can name it."""

from collections.abc import Iterator
from typing import Any

from dpal.imports import import_path
from dpal.models.registry import MODELS
from dpal.selection.acquisition import Acquisition
from dpal.selection.acquisition_checks import is_foreign

_TRUSTED = ("dpal", "torch")


def acquisition_name(acquisition: Acquisition) -> str:
    """What an acquisition function is recorded as: dpal's own by its name, any other by its import path."""
    return import_path(acquisition) if is_foreign(acquisition) else acquisition.name


def is_same_code(one: str, other: str) -> bool:
    """Whether two names mean the same code; what a script defines is called otherwise once the script is imported."""
    if one == other or ":" not in one or ":" not in other:
        return one == other
    modules, names = zip(*(path.split(":", 1) for path in (one, other)), strict=True)
    return "__main__" in modules and names[0] == names[1]


def foreign_code(acquisition: Acquisition, model: Any) -> tuple[str, ...]:
    """The import paths of an acquisition function and a model (a name, an import path, a module, a function).

    Of a torch module that is put together from others, the outermost ones that are neither torch's nor dpal's.
    """
    found = [import_path(acquisition)] if is_foreign(acquisition) else []
    if isinstance(model, str):
        found += [model] if model not in MODELS and _package(model) not in _TRUSTED else []
    elif hasattr(model, "children"):
        found += _outermost(model, _TRUSTED)
    elif _package(import_path(model)) not in _TRUSTED:
        found.append(import_path(model))
    return tuple(sorted(set(found)))


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
