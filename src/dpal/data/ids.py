"""Names of records and units: texts that stay the same in files, tables and databases."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dpal.data.records import is_text
from dpal.errors import BadData

# numpy gives every text the room of the longest: one page of text as an id would cost gigabytes.
LONGEST_ID = 1024


def as_ids(names: Iterable[object]) -> NDArray[np.str_]:
    """Ids as texts. Whole numbers are converted; anything else must be a text already."""
    texts: list[str] = []
    for row, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
            raise BadData(f"The id of record number {row + 1:,} is {name!r}. Ids are texts or whole numbers.")
        text = str(name)
        # numpy drops NULs at the end of a text: two ids would become one.
        if "\0" in text or not is_text(text) or len(text) > LONGEST_ID:
            raise BadData(
                f"The id of record number {row + 1:,} is {text[:80]!r} ({len(text):,} characters). Ids have at most "
                f"{LONGEST_ID:,}, none of them NUL or half a surrogate pair."
            )
        texts.append(text)
    return np.asarray(texts, dtype=np.str_)
