"""Files that commands write: never in place of another without being told."""

import os
from pathlib import Path
from typing import Annotated

import typer

from dpal.errors import DpalError, InvalidArgument

Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]


def require_free(*files: Path | None, force: bool = False) -> None:
    """Refuse, before any work is done, to replace a file or to write where there is no folder."""
    for file in files:
        if file is None:
            continue
        if file.is_dir() or not file.parent.is_dir() or not file.name:
            raise InvalidArgument("the file to write", str(file), "a file in a folder that exists")
        if not force and os.path.lexists(file):
            raise DpalError(
                f"{file} is there already. Choose another name, or replace it with --force. Nothing was written."
            )
