"""What a plan is made for: the budget, the sizes, the training settings and how selection is done."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.accountants import Accountant, accountant_named
from dpal.privacy.campaign_accounting import ACCOUNTINGS
from dpal.privacy.mechanisms import Gaussian
from dpal.selection.registry import selection_kind
from dpal.selection.selection import AIMS, PROMISES, Selection, SelectionBudget

# The unit where no other is named.
RECORD = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A budget and a campaign's sizes, without defaults: `PlanRequest.resolve` fills them in. All of it is public.

    All sizes count units: what the promise protects one of.
    """

    target_epsilon: float
    target_delta: float
    pool_size: int
    initial_size: int
    query_sizes: tuple[int, ...]
    # Whether a planner may choose other query sizes with the same sum.
    free_query_sizes: bool
    batch_size: int
    epochs: float
    # Whether the ids that selections choose stay inside or are released.
    promise: str
    selection: str
    # The part of ε that all selections may use together.
    selection_epsilon: float
    selection_aim: str
    accounting: str
    accountant: str
    # The noise multiplier of a private mean of the whole pool, released before anything else. None: no mean.
    mean_noise_multiplier: float | None
    # What the planner `scouting` puts into its short phases: the initial set's share of ε, and a share of all steps.
    scouting_epsilon_share: float
    scouting_steps_share: float
    # What the promise protects one of: a record, or a person with several records.
    unit: str

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "target_epsilon", checks.positive("target_epsilon", self.target_epsilon))
        store(self, "target_delta", checks.open_probability("target_delta", self.target_delta))
        store(self, "epochs", checks.positive("epochs", self.epochs))
        store(self, "selection_epsilon", checks.non_negative("selection_epsilon", self.selection_epsilon))
        for name in ("scouting_epsilon_share", "scouting_steps_share"):
            store(self, name, checks.open_probability(name, getattr(self, name)))
        for name in ("pool_size", "initial_size", "batch_size"):
            store(self, name, _size(name, getattr(self, name)))
        store(self, "query_sizes", tuple(_size("a query size", size) for size in self.query_sizes))
        if not isinstance(self.unit, str) or not self.unit.strip() or not self.unit.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("unit", self.unit, "a word such as record or patient")
        accountant_named(self.accountant)
        if self.mean_noise_multiplier is not None:
            noise = checks.noise("mean_noise_multiplier", self.mean_noise_multiplier)
            store(self, "mean_noise_multiplier", noise)
            if self.accounting == "basic":
                allowed = "renyi or branch with a private mean: the paper's has none"
                raise InvalidArgument("accounting", self.accounting, allowed)
        if not isinstance(self.free_query_sizes, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("free_query_sizes", self.free_query_sizes, "true or false")
        if self.accounting not in ACCOUNTINGS:
            raise InvalidArgument("accounting", self.accounting, f"one of {', '.join(ACCOUNTINGS)}")
        if self.promise not in PROMISES:
            raise InvalidArgument("promise", self.promise, f"one of {', '.join(PROMISES)}")
        if self.selection_aim not in AIMS:
            raise InvalidArgument("selection_aim", self.selection_aim, f"one of {', '.join(AIMS)}")
        if self.labelling_budget > self.pool_size:
            allowed = f"at most the pool size of {self.pool_size:,}"
            raise InvalidArgument("the sum of the initial size and the query sizes", self.labelling_budget, allowed)
        if self.batch_size > self.initial_size:
            allowed = f"at most the initial size of {self.initial_size:,}: a batch is drawn from the labelled records"
            raise InvalidArgument("batch_size", self.batch_size, allowed)
        if self.selection_epsilon >= self.target_epsilon:
            allowed = f"below the target ε of {self.target_epsilon:g}, or nothing is left for training"
            raise InvalidArgument("selection_epsilon", self.selection_epsilon, allowed)

    @property
    def group_sizes(self) -> tuple[int, ...]:
        return (self.initial_size, *self.query_sizes)

    @property
    def labelling_budget(self) -> int:
        return sum(self.group_sizes)

    @property
    def labelled_by_phase(self) -> tuple[int, ...]:
        return tuple(sum(self.group_sizes[: phase + 1]) for phase in range(len(self.group_sizes)))

    @property
    def unlabelled_before_query(self) -> tuple[int, ...]:
        return tuple(self.pool_size - labelled for labelled in self.labelled_by_phase[:-1])

    @property
    def mean(self) -> Gaussian | None:
        """The private mean that every record of the pool is part of."""
        noise = self.mean_noise_multiplier
        return None if noise is None else Gaussian(noise_multiplier=noise)

    @property
    def before(self) -> tuple[tuple[Gaussian, int], ...]:
        """What every record of the pool is part of before the first phase."""
        return () if self.mean is None else ((self.mean, 1),)

    @property
    def certifier(self) -> Accountant:
        return accountant_named(self.accountant)

    @property
    def searcher(self) -> Accountant:
        """The certifier in a faster form, which is never below it."""
        return self.certifier.for_searches(self.target_epsilon)

    @property
    def selection_pays(self) -> bool:
        """Whether selection takes a part of ε."""
        return self.selection_epsilon > 0 and selection_kind(self.selection).spends_epsilon

    def selections(self, order: float) -> tuple[Selection, ...]:
        """The selections of the campaign; `order` is the Rényi order that decides its ε."""
        if not self.query_sizes:
            return ()
        budget = SelectionBudget(
            epsilon=self.selection_epsilon,
            query_sizes=self.query_sizes,
            unlabelled=self.unlabelled_before_query,
            accounting=self.accounting,
            order=order,
            aim=self.selection_aim,
        )
        planned = selection_kind(self.selection).plan(budget)
        # A kind of the user's own may return anything.
        count = len(planned) if isinstance(planned, Sequence) else -1  # pyright: ignore[reportUnnecessaryIsInstance]
        if count != len(self.query_sizes):
            allowed = f"a list of {len(self.query_sizes)} selections, one for each query"
            raise InvalidArgument(f"what plan of {self.selection} returns", planned, allowed)
        return tuple(planned)


def default_delta(pool_size: int) -> float:
    """The largest power of ten at or below half of one over the pool size."""
    return 10.0 ** math.floor(-math.log10(2 * _size("pool_size", pool_size)) + 1e-12)


def equal_queries(labelling_budget: int, initial_size: int, queries: int) -> tuple[int, ...]:
    """What is left of the labelling budget after the initial set, in equal queries."""
    left = _size("labelling_budget", labelling_budget) - initial_size
    queries = checks.count("the number of queries", queries)
    if queries == 0 and left == 0:
        return ()
    if queries == 0:
        allowed = f"{initial_size:,}, the initial size: one phase has no queries. Give query_sizes or more phases"
        raise InvalidArgument("labelling_budget", labelling_budget, allowed)
    if left < queries:
        allowed = f"enough for the initial {initial_size:,} and at least one label in each of {queries} queries"
        raise InvalidArgument("labelling_budget", labelling_budget, allowed)
    return tuple(left // queries + (1 if index < left % queries else 0) for index in range(queries))


def _size(name: str, value: object) -> int:
    size = checks.count(name, value)
    if size == 0:
        raise InvalidArgument(name, value, "a whole number of at least 1")
    return size
