"""Optional packages, asked for where they are needed, with a kind answer where they are missing."""

import importlib
from typing import Any

from dpal.errors import MissingPackage


def optional(module: str, *, extra: str) -> Any:
    """The module, or an error with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise MissingPackage(
            f"{module} is not installed. It comes with: pip install 'dpal[{extra}]'. Nothing was read."
        ) from error
