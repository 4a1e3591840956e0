"""What a plan is asked for: the budget, the sizes, the training settings and how selection is done."""

import math
from dataclasses import dataclass

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.accountants import DEFAULT_ACCOUNTANT, accountant_named
from dpal.privacy.joint import ACCOUNTINGS
from dpal.privacy.pld import PldAccountant
from dpal.privacy.renyi import RdpAccountant

MEAN_SCORE = "mean-score"
AIMS = (MEAN_SCORE, "overlap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A budget and a campaign's sizes. Everything here is public."""

    target_epsilon: float
    target_delta: float
    pool_size: int
    initial_size: int
    query_sizes: tuple[int, ...]
    # Whether a planner may choose other query sizes with the same sum.
    free_query_sizes: bool = False
    batch_size: int
    epochs: float
    selection: str = "threshold"
    # The part of ε that selection may use in all; for threshold sampling see planning/selections.py.
    selection_epsilon: float = 0.0
    # What threshold sampling serves best: the mean score of what it takes, or its overlap with the true top.
    selection_aim: str = MEAN_SCORE
    acquisition_reads_training_data: bool = False
    accounting: str = "branch"
    accountant: str = DEFAULT_ACCOUNTANT

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "target_epsilon", checks.positive("target_epsilon", self.target_epsilon))
        store(self, "target_delta", checks.open_probability("target_delta", self.target_delta))
        store(self, "epochs", checks.positive("epochs", self.epochs))
        store(self, "selection_epsilon", checks.non_negative("selection_epsilon", self.selection_epsilon))
        for name in ("pool_size", "initial_size", "batch_size"):
            store(self, name, _size(name, getattr(self, name)))
        store(self, "query_sizes", tuple(_size("a query size", size) for size in self.query_sizes))
        accountant_named(self.accountant)
        for name in ("free_query_sizes", "acquisition_reads_training_data"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgument(name, getattr(self, name), "true or false")
        if self.accounting not in ACCOUNTINGS:
            raise InvalidArgument("accounting", self.accounting, f"one of {', '.join(ACCOUNTINGS)}")
        if self.selection_aim not in AIMS:
            raise InvalidArgument("selection_aim", self.selection_aim, f"one of {', '.join(AIMS)}")
        if self.labelling_budget > self.pool_size:
            allowed = f"at most the pool size of {self.pool_size:,}"
            raise InvalidArgument("the initial size and the query sizes together", self.labelling_budget, allowed)
        if self.batch_size > self.initial_size:
            allowed = f"at most the initial size of {self.initial_size:,}: a batch is drawn from the labelled records"
            raise InvalidArgument("batch_size", self.batch_size, allowed)
        if self.selection_epsilon >= self.target_epsilon:
            allowed = f"below the target ε of {self.target_epsilon:g}, or nothing is left for training"
            raise InvalidArgument("selection_epsilon", self.selection_epsilon, allowed)
        if self.acquisition_reads_training_data and self.accounting != "basic":
            allowed = "basic where the acquisition function reads training data: everyone pays for every selection"
            raise InvalidArgument("accounting", self.accounting, allowed)

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
    def certifier(self) -> RdpAccountant | PldAccountant:
        return accountant_named(self.accountant)

    @property
    def searcher(self) -> RdpAccountant | PldAccountant:
        """The certifier on a grid as coarse as the target ε allows: much faster, and never below the certifier."""
        certifier = self.certifier
        if not isinstance(certifier, PldAccountant):
            return certifier
        coarser = min(max(math.floor(math.log2(self.target_epsilon)), 0), 5)
        return PldAccountant(interval=2**coarser * certifier.interval)


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
