"""Selections as a plan states them: a mechanism with all its parameters, and what it releases."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from dpal.errors import InvalidArgument, NoSolution
from dpal.planning.setting import Setting
from dpal.privacy import checks
from dpal.privacy.groups import Selection
from dpal.privacy.mechanisms import BernoulliSelection, Exponential, Gaussian, Laplace

# The ε of the private quantile that sets the threshold: plenty for thousands of records.
THRESHOLD_EPSILON = 0.05
# The public fraction of scores above the threshold that serves the mean score best.
FRACTION_ABOVE = 0.45
# Beyond this ratio of probabilities a threshold selection gains next to nothing.
_LARGEST_CHOICE_EPSILON = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSelection:
    """One selection: how many records it wants out of how many, by which mechanism with which parameters."""

    mechanism: str
    query_size: int
    unlabelled: int
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def is_private(self) -> bool:
        return self.mechanism != "none"

    def parameter(self, name: str) -> float:
        return dict(self.parameters)[name]

    def released(self) -> Selection:
        """What this selection tells about a record, for the accountants."""
        match self.mechanism:
            case "laplace":
                return Selection(choice=Laplace(epsilon=self.parameter("epsilon")))
            case "gaussian":
                return Selection(choice=Gaussian(noise_multiplier=self.parameter("noise_multiplier")))
            case "threshold":
                choice = BernoulliSelection(
                    probability_high=self.parameter("probability_high"),
                    probability_low=self.parameter("probability_low"),
                )
                return Selection(choice=choice, threshold=Exponential(epsilon=self.parameter("threshold_epsilon")))
            case "random" | "none":
                # Random: the choice does not look at the records. None: not private, and every output says so.
                return Selection(choice=None)
            case _:
                raise InvalidArgument("mechanism", self.mechanism, f"one of {', '.join(SELECTIONS)}")

    def to_json(self) -> dict[str, object]:
        return {
            "mechanism": self.mechanism,
            "private": self.is_private,
            "query_size": self.query_size,
            "unlabelled": self.unlabelled,
            **dict(self.parameters),
        }

    @classmethod
    def from_json(cls, document: object) -> "PlannedSelection":
        if not isinstance(document, Mapping):
            raise InvalidArgument("a selection", document, "an object")
        given = dict(cast("Mapping[str, object]", document))
        name = given.pop("mechanism", None)
        if not isinstance(name, str) or name not in SELECTIONS:
            raise InvalidArgument("mechanism", name, f"one of {', '.join(SELECTIONS)}")
        sizes = {key: given.pop(key, None) for key in ("query_size", "unlabelled")}
        private = given.pop("private", name != "none")
        if private != (name != "none"):
            raise InvalidArgument(f"private of the selection {name}", private, str(name != "none").lower())
        wanted = _PARAMETERS[name]
        if sorted(given) != sorted(wanted):
            raise InvalidArgument(f"the set of parameters of {name}", sorted(given), f"exactly {', '.join(wanted)}")
        selection = cls(
            mechanism=name,
            query_size=checks.count("query_size", sizes["query_size"]),
            unlabelled=checks.count("unlabelled", sizes["unlabelled"]),
            parameters=tuple((key, checks.non_negative(key, given[key])) for key in wanted),
        )
        selection.released()  # the mechanisms check the parameters
        return selection


_PARAMETERS: dict[str, tuple[str, ...]] = {
    "laplace": ("epsilon",),
    "gaussian": ("noise_multiplier",),
    "threshold": ("choice_epsilon", "fraction_above", "threshold_epsilon", "probability_high", "probability_low"),
    "random": (),
    "none": (),
}


def threshold_selection(query_size: int, unlabelled: int, choice_epsilon: float) -> PlannedSelection:
    """Threshold sampling that takes query_size of the unlabelled in expectation."""
    growth = math.exp(choice_epsilon)
    low = query_size / (unlabelled * (FRACTION_ABOVE * growth + 1 - FRACTION_ABOVE))
    high = min(low * growth, 1 - (1 - low) / growth)
    if high < low * growth:
        # So many are wanted that 1 − high binds instead: keep the ratio there and the expected number.
        low = 1 - (1 - query_size / unlabelled) / (FRACTION_ABOVE / growth + 1 - FRACTION_ABOVE)
        high = 1 - (1 - low) / growth
    if not 0 < low <= high < 1:
        raise NoSolution(
            f"Threshold sampling cannot take {query_size:,} of {unlabelled:,} records with a choice ε of "
            f"{choice_epsilon:.3g}: nearly all are wanted. Use a smaller query or the selection 'random'."
        )
    return PlannedSelection(
        mechanism="threshold",
        query_size=query_size,
        unlabelled=unlabelled,
        parameters=(
            ("choice_epsilon", choice_epsilon),
            ("fraction_above", FRACTION_ABOVE),
            ("threshold_epsilon", THRESHOLD_EPSILON),
            ("probability_high", high),
            ("probability_low", low),
        ),
    )


def _laplace(setting: Setting, order: float) -> list[PlannedSelection]:
    # The paper's: ε_sel/T for each of T selections.
    share = _share(setting)
    return [_plain(setting, index, "laplace", ("epsilon", share)) for index in range(len(setting.query_sizes))]


def _gaussian(setting: Setting, order: float) -> list[PlannedSelection]:
    if setting.accounting == "basic":
        raise InvalidArgument("accounting", "basic", "renyi or branch with the selection gaussian, which has no pure ε")
    # The noise whose curve, at the order that decides, is the same share that Laplace would get.
    noise = math.sqrt(order / (2 * _share(setting)))
    return [
        _plain(setting, index, "gaussian", ("noise_multiplier", noise)) for index in range(len(setting.query_sizes))
    ]


def _threshold(setting: Setting, order: float) -> list[PlannedSelection]:
    """Ratios of probabilities such that a record taken by selection j has paid j shares of the selection's ε."""
    share = _share(setting)
    chosen: list[PlannedSelection] = []
    passed = 0.0
    for index, (query_size, unlabelled) in enumerate(
        zip(setting.query_sizes, setting.unlabelled_before_query, strict=True)
    ):
        allowed = (index + 1) * share - passed - (index + 1) * threshold_cost(setting.accounting, order)
        if allowed <= 0:
            raise NoSolution(
                f"A selection ε of {setting.selection_epsilon:g} over {len(setting.query_sizes)} selections does not "
                f"pay for the threshold (ε {THRESHOLD_EPSILON} each). Use at least "
                f"{2 * THRESHOLD_EPSILON * len(setting.query_sizes):g}, or the selection 'random'."
            )
        choice_epsilon = _affordable_choice(query_size, unlabelled, share, allowed, setting.accounting, order)
        selection = threshold_selection(query_size, unlabelled, choice_epsilon)
        if setting.accounting == "branch":
            passed += passed_cost(selection, order)
        chosen.append(selection)
    return chosen


def _affordable_choice(
    query_size: int, unlabelled: int, share: float, allowed: float, accounting: str, order: float
) -> float:
    if accounting == "basic":
        return share - THRESHOLD_EPSILON
    if accounting == "renyi":
        # One bit's curve is at most order·ε²/8; a bit of that size is charged to everyone in each selection.
        return math.sqrt(8 * max(share - threshold_cost(accounting, order), 1e-6) / order)
    low, high = 0.0, _LARGEST_CHOICE_EPSILON
    for _ in range(50):
        middle = (low + high) / 2
        try:
            fits = taken_cost(threshold_selection(query_size, unlabelled, middle), order) <= allowed
        except NoSolution:
            fits = False
        low, high = (middle, high) if fits else (low, middle)
    return max(low, 1e-3)


def threshold_cost(accounting: str, order: float) -> float:
    """What the released threshold costs, at the order that decides."""
    return THRESHOLD_EPSILON if accounting == "basic" else order * THRESHOLD_EPSILON**2 / 8


def taken_cost(selection: PlannedSelection, order: float) -> float:
    """What being taken costs at this order (docs/maths/branches.md), at least 0: a group never trains on credit."""
    high, low = selection.parameter("probability_high"), selection.parameter("probability_low")
    return max(0.0, (order * math.log(high) + (1 - order) * math.log(low)) / (order - 1))


def passed_cost(selection: PlannedSelection, order: float) -> float:
    """What being passed over costs at this order."""
    high, low = selection.parameter("probability_high"), selection.parameter("probability_low")
    return max(0.0, (order * math.log1p(-low) + (1 - order) * math.log1p(-high)) / (order - 1))


def _free(name: str) -> Callable[[Setting, float], list[PlannedSelection]]:
    def build(setting: Setting, order: float) -> list[PlannedSelection]:
        return [_plain(setting, index, name) for index in range(len(setting.query_sizes))]

    return build


def _plain(setting: Setting, index: int, name: str, *parameters: tuple[str, float]) -> PlannedSelection:
    return PlannedSelection(
        mechanism=name,
        query_size=setting.query_sizes[index],
        unlabelled=setting.unlabelled_before_query[index],
        parameters=parameters,
    )


def _share(setting: Setting) -> float:
    if setting.selection_epsilon <= 0:
        allowed = f"above 0 for the selection {setting.selection!r}, or use the selection 'random'"
        raise InvalidArgument("selection_epsilon", setting.selection_epsilon, allowed)
    return setting.selection_epsilon / len(setting.query_sizes)


# Each builds the selections of a setting; `order` is the Rényi order that decides the setting's ε.
SELECTIONS: dict[str, Callable[[Setting, float], list[PlannedSelection]]] = {
    "threshold": _threshold,
    "laplace": _laplace,
    "gaussian": _gaussian,
    "random": _free("random"),
    "none": _free("none"),
}


def planned_selections(setting: Setting, order: float) -> tuple[PlannedSelection, ...]:
    """The selections of a setting, with every parameter fixed."""
    if setting.selection not in SELECTIONS:
        raise InvalidArgument("selection", setting.selection, f"one of {', '.join(SELECTIONS)}")
    return tuple(SELECTIONS[setting.selection](setting, order)) if setting.query_sizes else ()
