"""Who answers: the dataset's own labels, people who exchange files, or a Python function."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from dpal.campaign.facts import SKIPPED, Answer
from dpal.data import Pool
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument


class Oracle(Protocol):
    """Asked for some records, it answers now, as far as it can (a mapping, or pairs of id and answer), or later (None).

    Answers are class names or numbers, targets for several labels, skip or cannot-tell.
    """

    name: ClassVar[str]

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, Any] | Iterable[tuple[str, Any]] | None: ...


class SimulatedOracle:
    """The labels that the dataset has already; for simulations."""

    name: ClassVar[str] = "simulated"

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, Answer] | None:
        if pool.labels is None:
            raise InvalidArgument("oracle", "simulated", f"another one: the pool {pool.name} has no labels")
        labelled = pool.labelled()
        found: dict[str, Answer] = {}
        for name, position in zip(ids, pool.positions(ids), strict=True):
            label = pool.labels[position]
            if not labelled[position]:
                found[name] = SKIPPED
            else:
                # By name: where classes are called 1, 2, 3, a number could mean either.
                found[name] = tuple(float(each) for each in label) if pool.multi_label else pool.classes[int(label)]
        return found


class FileOracle:
    """People, through files: `dpal labels export` and `dpal labels import`."""

    name: ClassVar[str] = "files"

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, Answer] | None:
        return None


@dataclass(frozen=True, slots=True)
class CallableOracle:
    """A Python function from (id, record) to a class's name or number, None to skip.

    The record is an array, a dictionary of arrays, or for texts a tuple of texts.
    """

    name: ClassVar[str] = "callable"
    function: Callable[[str, Any], object]

    def ask(self, ids: Sequence[str], pool: Pool) -> Iterable[tuple[str, object]]:
        """One after the other, so that what was answered before the function fails is not lost."""
        for name, position in zip(ids, pool.positions(ids), strict=True):
            record: Any
            if isinstance(pool.records, TextRecords):
                record = pool.records.texts[position]
            else:
                rows = pool.records.read(position[None])
                record = {key: part[0] for key, part in rows.items()} if isinstance(rows, dict) else rows[0]
            given = self.function(name, record)
            yield name, SKIPPED if given is None else given


ORACLES: dict[str, Callable[[], Oracle]] = {SimulatedOracle.name: SimulatedOracle, FileOracle.name: FileOracle}


def as_oracle(given: "Oracle | Callable[[str, Any], object] | str") -> Oracle:
    """An oracle from its name, from a function, or as it is."""
    if isinstance(given, str):
        if given not in ORACLES:
            allowed = f"one of {', '.join(ORACLES)}, or a function: give it again (oracle=...) when opening"
            raise InvalidArgument("oracle", given, allowed)
        return ORACLES[given]()
    if hasattr(given, "ask"):
        return given  # pyright: ignore[reportReturnType]
    if callable(given):
        return CallableOracle(given)
    raise InvalidArgument("oracle", type(given).__name__, f"one of {', '.join(ORACLES)}, or a function")
