"""What describes a published dataset. Each dataset has its own file; `registry` gives them names."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dpal.data.named.download import OfficialFile
from dpal.data.pool import Pool


def _no_files(part: str, size: int) -> tuple[OfficialFile, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDataset:
    """A published dataset: its parts, its sizes in pixels (none for texts), its files and how they are read."""

    parts: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    read: Callable[[Path, str, int], Pool]
    files: Callable[[str, int], tuple[OfficialFile, ...]] = _no_files
    # Whether the official files are there in a second format that is also read.
    other_form_is_there: Callable[[Path, str], bool] = lambda folder, part: False
    also_in: tuple[Path, ...] = ()
    any_size: bool = False
