"""Imports at run time: optional packages, and code of the user's own by an import path "package.module:name"."""

import importlib
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar, cast

from dpal.errors import InvalidArgument, MissingPackage

T = TypeVar("T")

# Which extra an optional package comes with.
EXTRAS = {
    "PIL": "data",
    "pyarrow": "data",
    "sklearn": "data",
    "datasets": "hub",
    "httpx": "label-studio",
    "alembic": "mlflow",
    "matplotlib": "plots",
    "mlflow": "mlflow",
    "onnxscript": "onnx",
    "openpyxl": "excel",
    "pydicom": "dicom",
    "ray": "ray",
    "sqlalchemy": "mlflow",
    "starlette": "web",
    "transformers": "text",
    "uvicorn": "web",
    "opacus": "train",
    "safetensors": "train",
    "torch": "train",
}


def missing_package(error: ModuleNotFoundError) -> MissingPackage | None:
    """The error with the command that installs what is missing, if it is an optional package of dpal."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return MissingPackage(f"This needs {package}, which is not installed: pip install 'dpal[{EXTRAS[package]}]'.")


def optional(module: str, *, extra: str) -> Any:
    """The module, or an error with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise MissingPackage(
            f"{module} is not installed. Install it with: pip install 'dpal[{extra}]'. Nothing was read."
        ) from error


def named(what: str, name: object, registry: Mapping[str, T]) -> T:
    """What the registry has under this name, or what an import path leads to. `what` is the argument's name."""
    if isinstance(name, str) and name in registry:
        return registry[name]
    allowed = f'one of {", ".join(registry)}, or an import path "package.module:name"'
    module_name, _, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not module_name or module_name.startswith(".") or not attribute:
        raise InvalidArgument(what, name, allowed)
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise InvalidArgument(what, name, f"{allowed} ({error}; is its folder in PYTHONPATH?)") from error
    except AttributeError as error:
        raise InvalidArgument(what, name, f"{allowed} ({module_name} has no {attribute})") from error
    if not callable(found):
        raise InvalidArgument(what, name, f"{allowed}; {attribute} cannot be called")
    return cast("T", found)


def import_path(code: Any) -> str:
    """Where a class, a function or an object's class is imported from: package.module:name."""
    while isinstance(code, partial):
        code = code.func
    definition = code if hasattr(code, "__qualname__") else type(code)
    return f"{definition.__module__}:{definition.__qualname__}"
