"""The accountants by name."""

from typing import Protocol

from dpal.errors import InvalidArgument
from dpal.privacy.history import History
from dpal.privacy.pld import PldAccountant
from dpal.privacy.renyi import RdpAccountant


class Accountant(Protocol):
    """Turns what was done to a record into a promise. Both answers are upper bounds."""

    def epsilon(self, history: History, delta: float) -> float: ...

    def delta(self, history: History, epsilon: float) -> float: ...


ACCOUNTANTS: dict[str, RdpAccountant | PldAccountant] = {"pld": PldAccountant(), "rdp": RdpAccountant()}
DEFAULT_ACCOUNTANT = "pld"


def accountant_named(name: str) -> RdpAccountant | PldAccountant:
    """The accountant of that name, in its default setting."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("accountant", name, f"one of {', '.join(ACCOUNTANTS)}")
    return ACCOUNTANTS[name]
