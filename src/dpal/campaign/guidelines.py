"""What the people who label are told: a text and example pictures, which whoever runs the campaign chooses."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpal.campaign.files import write_text
from dpal.campaign.layout import GUIDELINES
from dpal.data.images import opened
from dpal.errors import InvalidArgument, MissingData
from dpal.labels.pictures import as_png

_LONGEST = 20_000
_MOST_EXAMPLES = 50
_TEXT, _WORDS = "text.txt", "examples.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidelines:
    """The text, and what each example shows, in words. The pictures are files of their own."""

    text: str = ""
    examples: tuple[str, ...] = ()


def write_guidelines(folder: Path, text: str, examples: Sequence[tuple[str, Path]] = ()) -> Guidelines:
    """Put guidelines in the place of earlier ones. An example is what it shows, and an image file."""
    if len(text) > _LONGEST:
        raise InvalidArgument("the guidelines", f"{len(text):,} letters", f"at most {_LONGEST:,} letters long")
    if len(examples) > _MOST_EXAMPLES:
        raise InvalidArgument("the examples", f"{len(examples):,}", f"at most {_MOST_EXAMPLES}")
    # Read before anything is replaced. Only pixels are kept: a file may say more than its picture shows.
    pictures = [as_png(np.asarray(opened(file, words).convert("RGB"))) for words, file in examples]
    place = folder / GUIDELINES
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    for number, picture in enumerate(pictures):
        (place / f"{number}.png").write_bytes(picture)
    write_text(place / _TEXT, text)
    write_text(place / _WORDS, json.dumps([words for words, _ in examples]))
    return Guidelines(text=text, examples=tuple(words for words, _ in examples))


def read_guidelines(folder: Path) -> Guidelines:
    """The guidelines of a campaign; empty if there are none."""
    place = folder / GUIDELINES
    try:
        words = json.loads((place / _WORDS).read_text(encoding="utf-8"))
        return Guidelines(text=(place / _TEXT).read_text(encoding="utf-8"), examples=tuple(map(str, words)))
    except (FileNotFoundError, ValueError):
        return Guidelines()


def example_picture(folder: Path, number: int) -> bytes:
    """The PNG file of an example."""
    if not 0 <= number < len(read_guidelines(folder).examples):
        raise MissingData(f"There is no example {number}.")
    return (folder / GUIDELINES / f"{number}.png").read_bytes()
