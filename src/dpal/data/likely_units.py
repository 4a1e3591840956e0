"""Whether ids look as if several records belonged to one person, and the pattern that would name them."""

import re
from collections.abc import Sequence

# What is in front of the first separator, or the digits at the start: 00000013_005, patient-7/scan-2, 12a.
_PATTERNS = ("^([^_]+)_", "^([^/]+)/", "^([^-]+)-", "^([0-9]+)[^0-9]")
# Fewer units would be classes or folders, and not people.
_FEWEST, _MOST_RECORDS_EACH = 3, 50
_SHARED = 0.02


def likely_pattern(ids: Sequence[str]) -> str | None:
    """A pattern by which ids fall into groups of a few; None if none does. It reads ids only.

    The one with the most groups is the likeliest: a folder may hold several people.
    """
    best: tuple[int, str] | None = None
    for pattern in _PATTERNS:
        compiled = re.compile(pattern)
        matches = [compiled.match(record_id) for record_id in ids]
        units = len({match.group(1) for match in matches if match is not None})
        if None in matches or units < _FEWEST or len(ids) > _MOST_RECORDS_EACH * units:
            continue
        if len(ids) - units >= max(1.0, _SHARED * len(ids)) and (best is None or units > best[0]):
            best = (units, pattern)
    return None if best is None else best[1]
