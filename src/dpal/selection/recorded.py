"""A selection of the user's own kind as a document states it: enough to account for it, without running its code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

from dpal.errors import DpalError, InvalidArgument
from dpal.privacy import checks
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import mechanism_from_json
from dpal.randomness import Randomness
from dpal.selection.grid import Grid
from dpal.selection.selection import PROMISES, Chosen, Selection, SelectionBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSelection(Selection):
    """What the selection releases is in the document, so ε can be recomputed; choosing needs the code itself."""

    name: ClassVar[str] = "recorded"
    promises: ClassVar[tuple[str, ...]] = PROMISES
    path: str
    options: tuple[tuple[str, float], ...]
    stated: Released

    def __post_init__(self) -> None:
        self._require_sizes()

    def kind(self) -> str:
        return self.path

    def parameters(self) -> dict[str, float]:
        return dict(self.options)

    @property
    def released(self) -> Released:
        return self.stated

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        given = dict(document)
        released = given.pop("released", None)
        if not isinstance(released, Mapping) or set(released) != {"choice", "threshold"}:
            raise InvalidArgument("released of a selection", released, "what it releases: a choice and a threshold")
        if given.pop("private", None) is not True:
            raise InvalidArgument("private of a selection of your own", False, "true")
        path = str(given.pop("mechanism"))
        query_size, unlabelled = (checks.count(name, given.pop(name, None)) for name in ("query_size", "unlabelled"))
        choice, threshold = (
            None if released[part] is None else mechanism_from_json(released[part]) for part in ("choice", "threshold")
        )
        return cls(
            path=path,
            query_size=query_size,
            unlabelled=unlabelled,
            # Whole numbers stay whole: the document is written again to the letter.
            options=tuple(
                (name, value if type(value) is int else checks.number(name, value, "a number"))
                for name, value in given.items()
            ),
            stated=Released(choice=choice, threshold=threshold),
        )

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        raise InvalidArgument("selection", cls.name, "a kind that can be planned")

    def lift(self) -> float:
        self._needs_code()

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        self._needs_code()

    def _needs_code(self) -> NoReturn:
        raise DpalError(
            f"The selection {self.path} is not dpal's own, and its code was not imported. Open the campaign to run it."
        )
