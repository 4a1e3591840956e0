"""Selections as a plan states them: a mechanism with all its parameters, and what it releases."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from dpal.errors import InvalidArgument, NoSolution
from dpal.planning.setting import MEAN_SCORE, Setting
from dpal.privacy import checks
from dpal.privacy.campaign_history import Selection
from dpal.privacy.mechanisms import BernoulliSelection, DiscreteGaussian, DiscreteLaplace, Exponential, PureDP
from dpal.privacy.one_shot import one_shot_epsilon, weight_epsilon_for

# The ε of the private quantile that sets the threshold: plenty for thousands of records.
THRESHOLD_EPSILON = 0.05
# Noisy mechanisms round scores to this many steps: far finer than their noise.
GRID_STEPS = 1024
# The part of the pool that the sampled Gaussian looks at, as in the paper.
PARTICIPATION = 0.7
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
                steps = int(self.parameter("grid_steps"))
                return Selection(choice=DiscreteLaplace(epsilon=self.parameter("epsilon"), grid_steps=steps))
            case "gaussian" | "sampled-gaussian":
                choice = DiscreteGaussian(
                    noise_multiplier=self.parameter("noise_multiplier"),
                    grid_steps=int(self.parameter("grid_steps")),
                    participation=1.0 if self.mechanism == "gaussian" else self.parameter("participation"),
                )
                return Selection(choice=choice)
            case "exponential":
                weight_epsilon = self.parameter("weight_epsilon")
                return Selection(
                    choice=PureDP(epsilon=one_shot_epsilon(weight_epsilon, self.unlabelled, self.query_size))
                )
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
            parameters=tuple(
                (key, checks.count(key, given[key]) if key == "grid_steps" else checks.non_negative(key, given[key]))
                for key in wanted
            ),
        )
        if not 1 <= selection.query_size <= selection.unlabelled:
            allowed = f"from 1 to the {selection.unlabelled:,} unlabelled records"
            raise InvalidArgument("query_size of a selection", selection.query_size, allowed)
        selection.released()  # the mechanisms check the parameters
        return selection


_PARAMETERS: dict[str, tuple[str, ...]] = {
    "laplace": ("epsilon", "grid_steps"),
    "gaussian": ("noise_multiplier", "grid_steps"),
    "sampled-gaussian": ("noise_multiplier", "grid_steps", "participation"),
    "exponential": ("weight_epsilon",),
    "threshold": ("choice_epsilon", "fraction_above", "threshold_epsilon", "probability_high", "probability_low"),
    "random": (),
    "none": (),
}


def threshold_selection(
    query_size: int, unlabelled: int, choice_epsilon: float, aim: str = MEAN_SCORE
) -> PlannedSelection:
    """Threshold sampling that takes query_size of the unlabelled in expectation."""
    fraction_above = mean_score_fraction(choice_epsilon) if aim == MEAN_SCORE else query_size / unlabelled
    growth = math.exp(choice_epsilon)
    low = query_size / (unlabelled * (fraction_above * growth + 1 - fraction_above))
    high = min(low * growth, 1 - (1 - low) / growth)
    if high < low * growth:
        # So many are wanted that 1 − high binds instead: keep the ratio there and the expected number.
        low = 1 - (1 - query_size / unlabelled) / (fraction_above / growth + 1 - fraction_above)
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
            ("fraction_above", fraction_above),
            ("threshold_epsilon", THRESHOLD_EPSILON),
            ("probability_high", high),
            ("probability_low", low),
        ),
    )


def mean_score_fraction(choice_epsilon: float) -> float:
    """The public fraction of scores above the threshold that serves the mean score of what is taken.

    For uniform scores the best is 1/(1 + exp(ε/2)). A rarer high probability costs a taken record more under branch
    accounting, which moves the best towards one half: ε/3 was the best of several under equal plans.
    """
    return 1 / (1 + math.exp(choice_epsilon / 3))


def _laplace(setting: Setting, order: float) -> list[PlannedSelection]:
    # The paper's: ε_sel/T for each of T selections.
    share = _share(setting)
    return _same(setting, "laplace", ("epsilon", share), ("grid_steps", GRID_STEPS))


def _exponential(setting: Setting, order: float) -> list[PlannedSelection]:
    share = _share(setting)
    sizes = zip(setting.unlabelled_before_query, setting.query_sizes, strict=True)
    weights = [weight_epsilon_for(share, unlabelled, query_size) for unlabelled, query_size in sizes]
    return [_plain(setting, index, "exponential", ("weight_epsilon", weight)) for index, weight in enumerate(weights)]


def _gaussian(name: str, participation: float) -> Callable[[Setting, float], list[PlannedSelection]]:
    def build(setting: Setting, order: float) -> list[PlannedSelection]:
        if setting.accounting == "basic":
            allowed = f"renyi or branch with the selection {name}, which has no pure ε"
            raise InvalidArgument("accounting", "basic", allowed)
        # The noise whose curve, at the order that decides, is the same share that Laplace would get.
        mixed = math.log1p(math.expm1(min((order - 1) * _share(setting), 600.0)) / participation) / (order - 1)
        noise = math.sqrt(order / (2 * mixed))
        extra = () if participation == 1 else (("participation", participation),)
        return _same(setting, name, ("noise_multiplier", noise), ("grid_steps", GRID_STEPS), *extra)

    return build


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
            enough = 2 * THRESHOLD_EPSILON * len(setting.query_sizes)
            raise NoSolution(
                f"selection_epsilon is {setting.selection_epsilon:g}, too little for {len(setting.query_sizes)} "
                f"threshold selections. Use {enough:g} or more (with a target ε above it), fewer selections, or the "
                "selection 'random', which spends no ε."
            )
        choice_epsilon = _affordable_choice(setting, query_size, unlabelled, share, allowed, order)
        selection = threshold_selection(query_size, unlabelled, choice_epsilon, setting.selection_aim)
        if setting.accounting == "branch":
            passed += passed_cost(selection, order)
        chosen.append(selection)
    return chosen


def _affordable_choice(
    setting: Setting, query_size: int, unlabelled: int, share: float, allowed: float, order: float
) -> float:
    if setting.accounting == "basic":
        return share - THRESHOLD_EPSILON
    if setting.accounting == "renyi":
        # One bit's curve is at most order·ε²/8; a bit of that size is charged to everyone in each selection.
        return math.sqrt(8 * max(share - threshold_cost(setting.accounting, order), 1e-6) / order)
    low, high = 0.0, _LARGEST_CHOICE_EPSILON
    for _ in range(50):
        middle = (low + high) / 2
        try:
            selection = threshold_selection(query_size, unlabelled, middle, setting.selection_aim)
            fits = taken_cost(selection, order) <= allowed
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
        return _same(setting, name)

    return build


def _same(setting: Setting, name: str, *parameters: tuple[str, float]) -> list[PlannedSelection]:
    return [_plain(setting, index, name, *parameters) for index in range(len(setting.query_sizes))]


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
    "gaussian": _gaussian("gaussian", 1.0),
    "sampled-gaussian": _gaussian("sampled-gaussian", PARTICIPATION),
    "exponential": _exponential,
    "random": _free("random"),
    "none": _free("none"),
}


def planned_selections(setting: Setting, order: float) -> tuple[PlannedSelection, ...]:
    """The selections of a setting, with every parameter fixed."""
    if setting.selection not in SELECTIONS:
        raise InvalidArgument("selection", setting.selection, f"one of {', '.join(SELECTIONS)}")
    return tuple(SELECTIONS[setting.selection](setting, order)) if setting.query_sizes else ()
