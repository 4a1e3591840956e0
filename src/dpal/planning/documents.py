"""JSON documents that make promises: read strictly, and compared with what their own numbers give."""

import json

from dpal.errors import InvalidArgument


def read_json(name: str, text: str) -> object:
    """The document in a JSON text. Infinities, NaN and keys that appear twice are refused."""
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(name, text[:60], f"JSON ({error})") from error


def _no_constant(name: str) -> float:
    raise InvalidArgument("a number in the document", name, "finite")


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # People might read the one and programs the other.
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidArgument(
            "an object in the document", [key for key, _ in pairs], "without a key that appears twice"
        )
    return found


def require_same(place: str, stated: object, true: object, *, recomputed: bool = False) -> None:
    """Refuse a document that differs from what its own numbers give.

    Where they were recomputed, perhaps on another machine, ε may be stated higher by rounding, and never lower.
    """
    if isinstance(true, dict) and isinstance(stated, dict):
        if stated.keys() != true.keys():
            raise InvalidArgument(f"the set of fields of {place}", sorted(stated), f"exactly {', '.join(true)}")
        for key, value in true.items():
            require_same(f"{place}: {key}", stated[key], value, recomputed=recomputed)
    elif isinstance(true, list) and isinstance(stated, list):
        if len(stated) != len(true):
            raise InvalidArgument(f"the length of {place}", len(stated), str(len(true)))
        for index, (stated_item, true_item) in enumerate(zip(stated, true, strict=True)):
            require_same(f"{place}[{index}]", stated_item, true_item, recomputed=recomputed)
    elif not (_is_same(stated, true) or (recomputed and _is_epsilon(place) and _is_no_lower(stated, true))):
        raise InvalidArgument(place, stated, f"{true!r}, as the plan's numbers give")


def _is_same(stated: object, true: object) -> bool:
    if isinstance(stated, bool) or isinstance(true, bool):
        return stated is true
    if isinstance(stated, int | float) and isinstance(true, int | float):
        return stated == true
    return type(stated) is type(true) and stated == true


def _is_epsilon(place: str) -> bool:
    return place.endswith(": epsilon") or ": epsilon_by_phase[" in place


def _is_no_lower(stated: object, true: object) -> bool:
    """Machines differ in the last digits of an ε; more than that, it may only be too high."""
    if not isinstance(stated, int | float) or not isinstance(true, int | float):
        return False
    return true - 1e-9 <= stated <= true + max(1e-9, 1e-6 * abs(true))
