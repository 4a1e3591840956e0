"""Oracles, which answer the questions of a campaign: the dataset's own labels, people with files, or Python code.

Code that is not dpal's may be named by an import path. It sees only records that were selected, but its answers are
trained on. If its answer about one record depended on another record, that other record would be protected less than
promised. So certificates name it, as they do models and acquisition functions: code that is assumed to treat each
record by itself.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, cast

from dpal.data import Pool
from dpal.data.records import TextRecords
from dpal.errors import BadData, DpalError, InvalidArgument, OracleFailed
from dpal.imports import import_path, named
from dpal.labels.answers import SKIPPED


class Oracle(Protocol):
    """Asked about records, it answers now, as far as it can (a mapping, or pairs of id and answer), or later (None).

    Answers are class names or numbers, targets for several labels, skip or cannot-tell.
    """

    name: ClassVar[str]

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, Any] | Iterable[tuple[str, Any]] | None: ...


OracleLike: TypeAlias = Oracle | Callable[[str, Any], object] | str


class SimulatedOracle:
    """The labels that the dataset already has, for simulations."""

    name: ClassVar[str] = "simulated"

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, object] | None:
        if pool.labels is None:
            raise InvalidArgument("oracle", "simulated", f"another one: the pool {pool.name} has no labels")
        labelled = pool.labelled()
        answers: dict[str, object] = {}
        for record_id, position in zip(ids, pool.positions(ids), strict=True):
            label = pool.labels[position]
            if not labelled[position]:
                answers[record_id] = SKIPPED
            elif pool.multi_label:
                answers[record_id] = tuple(float(target) for target in label)
            else:
                # By name: if classes are called 1, 2, 3, a number could mean either.
                answers[record_id] = pool.classes[int(label)]
        return answers


class FileOracle:
    """People, through files: `dpal labels export` and `dpal labels import`."""

    name: ClassVar[str] = "files"

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, object] | None:
        return None


@dataclass(frozen=True, slots=True)
class CallableOracle:
    """A Python function from (id, record) to a class's name or number, or None to skip.

    The record is an array, a dictionary of arrays, or for texts a tuple of texts.
    """

    name: ClassVar[str] = "callable"
    function: Callable[[str, Any], object]

    def ask(self, ids: Sequence[str], pool: Pool) -> Iterable[tuple[str, object]]:
        """One record after the other, so that earlier answers are not lost if the function fails."""
        for record_id, position in zip(ids, pool.positions(ids), strict=True):
            record: Any
            if isinstance(pool.records, TextRecords):
                record = pool.records.texts[position]
            else:
                rows = pool.records.read(position[None])
                record = {key: values[0] for key, values in rows.items()} if isinstance(rows, dict) else rows[0]
            given = self.function(record_id, record)
            yield record_id, SKIPPED if given is None else given


ORACLES: dict[str, Callable[[], Oracle]] = {SimulatedOracle.name: SimulatedOracle, FileOracle.name: FileOracle}


def as_oracle(given: OracleLike) -> Oracle:
    """An oracle from its name, from an import path to an oracle class or a function, from a function, or as it is."""
    if isinstance(given, str):
        if given not in ORACLES and ":" not in given:
            known = ", ".join(ORACLES)
            allowed = f"one of {known}, an import path, or a function: give it again (oracle=...) when opening"
            raise InvalidArgument("oracle", given, allowed)
        code: Any = named("oracle", given, ORACLES)
        return as_oracle(code() if isinstance(code, type) else code)
    if hasattr(given, "ask"):
        return cast("Oracle", given)
    if callable(given):
        return CallableOracle(given)
    raise InvalidArgument("oracle", type(given).__name__, f"one of {', '.join(ORACLES)}, or a function")


def oracle_name(given: OracleLike) -> str:
    """What an oracle is called: an import path as it is, anything else by its own name, or by where it comes from."""
    if isinstance(given, str):
        return given
    oracle = as_oracle(given)
    return getattr(oracle, "name", None) or import_path(oracle)


def answers_of(oracle: Oracle, ids: Sequence[str], pool: Pool) -> object:
    """What an oracle answers when it is asked about these records. Its own errors are told as its own."""
    with _named(oracle):
        return oracle.ask(ids, pool)


@contextmanager
def _named(oracle: Oracle) -> Generator[None]:
    """Errors of code that is not dpal's as one sentence that says whose they are."""
    try:
        yield
    except (DpalError, MemoryError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise OracleFailed(
            f"The oracle {oracle_name(oracle)} failed: {type(error).__name__}{f': {said}' if said else ''}. Answers "
            "that it gave before are kept. Mend it, and run again: it is asked about the others."
        ) from error


def _one_by_one(oracle: Oracle, given: Iterable[object]) -> Iterator[object]:
    """What an oracle that answers one after the other says."""
    with _named(oracle):
        yield from given


def pairs_of(oracle: Oracle, given: object) -> Iterable[tuple[str, object]]:
    """The pairs of id and answer that an oracle returned, as a mapping or one after the other."""
    if isinstance(given, Mapping):
        given = cast("Mapping[str, object]", given).items()
    if not isinstance(given, Iterable):
        raise _not_pairs(oracle, given)
    for pair in _one_by_one(oracle, cast("Iterable[object]", given)):
        if not isinstance(pair, tuple) or len(cast("tuple[object, ...]", pair)) != 2:
            raise _not_pairs(oracle, pair)
        yield cast("tuple[str, object]", pair)


def _not_pairs(oracle: Oracle, given: object) -> BadData:
    return BadData(
        f"The oracle {oracle_name(oracle)} returned {type(given).__name__} instead of answers: a mapping from ids to "
        "answers, or pairs (id, answer)."
    )


def oracle_code(oracle: Oracle) -> str | None:
    """The import path of an oracle that is not dpal's, or of its function; None for dpal's own."""
    path = import_path(oracle.function if isinstance(oracle, CallableOracle) else oracle)
    return None if path.partition(":")[0].partition(".")[0] == "dpal" else path
