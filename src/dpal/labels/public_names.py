"""What records are called outside the campaign: opaque names, or their own ids if these are free of content."""

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

# Crockford's alphabet has no i, l, o or u, which people misread. Those letters are understood as the digits meant.
_CROCKFORD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz")
_MISREAD = str.maketrans("ilo", "110")
_GROUP, _GROUPS = 4, 3
# 48 letters, far more than any name needs.
_DIGEST_BYTES = 30


class Names(ABC):
    """A name for each record of a pool, and the record for each name."""

    @abstractmethod
    def name_of(self, record_id: str) -> str:
        """What this record is called outside."""

    @abstractmethod
    def id_of(self, text: str) -> str | None:
        """The id of the record with this name, or None."""

    @abstractmethod
    def problem_with(self, text: str) -> str:
        """Why a text is not the name of a record, in words."""


@dataclass(frozen=True, slots=True)
class OwnNames(Names):
    """The records' own ids, for ids that are free of content."""

    ids: frozenset[str] = field(repr=False)

    def name_of(self, record_id: str) -> str:
        return record_id

    def id_of(self, text: str) -> str | None:
        # Exactly as written, or without the spaces that a spreadsheet may have put around it.
        return text if text in self.ids else text.strip() if text.strip() in self.ids else None

    def problem_with(self, text: str) -> str:
        return f"the id {text.strip()!r} is not in the pool"


@dataclass(frozen=True, slots=True)
class OpaqueNames(Names):
    """Names such as 7k2m-0qxw-e9tz, which say nothing about a record without the campaign's secret."""

    names: dict[str, str] = field(repr=False)
    ids: dict[str, str] = field(repr=False)

    def name_of(self, record_id: str) -> str:
        return self.names[record_id]

    def id_of(self, text: str) -> str | None:
        return self.ids.get(_letters(text))

    def problem_with(self, text: str) -> str:
        if text in self.names or text.strip() in self.names:
            return (
                f"{text.strip()!r} is an id of the pool; this campaign takes the names that dpal labels export writes, "
                "because its ids were not declared free of content"
            )
        return f"no record is called {text.strip()!r}"


def public_names(ids: Iterable[str], *, secret: bytes, ids_are_free_of_content: bool) -> Names:
    """The names of these records: always the same for the same secret, and all different. Ids must all differ."""
    all_ids = list(ids)
    if ids_are_free_of_content:
        return OwnNames(frozenset(all_ids))
    longest = {record_id: _all_letters(record_id, secret) for record_id in all_ids}
    shortest = {record_id: letters[: _GROUP * _GROUPS] for record_id, letters in longest.items()}
    return OpaqueNames(*_both_ways(_lengthened(shortest, longest)))


def _all_letters(record_id: str, secret: bytes) -> str:
    # With a purpose of its own: the secret also keys fingerprints, which must not be comparable with names.
    digest = hashlib.blake2b(record_id.encode(), key=secret, digest_size=_DIGEST_BYTES, person=b"dpal names")
    return base64.b32encode(digest.digest()).decode().translate(_CROCKFORD)


def _lengthened(short: dict[str, str], longest: dict[str, str]) -> dict[str, str]:
    """Names that all differ: equal ones each get another group of letters until they differ."""
    seen: dict[str, list[str]] = {}
    for record_id, letters in short.items():
        seen.setdefault(letters, []).append(record_id)
    alike = [record_id for same in seen.values() if len(same) > 1 for record_id in same]
    if not alike:
        return short
    longer = {record_id: longest[record_id][: len(short[record_id]) + _GROUP] for record_id in alike}
    return _lengthened(short | longer, longest)


def _both_ways(letters: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    names = {
        record_id: "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))
        for record_id, text in letters.items()
    }
    return names, {text: record_id for record_id, text in letters.items()}


def _letters(text: str) -> str:
    """The letters of a name as a person wrote it, perhaps in capitals, without hyphens or with misread digits."""
    return "".join(letter for letter in text.lower() if letter.isalnum()).translate(_MISREAD)
