"""The call that users make: a budget and sizes, with a sensible default for everything but ε."""

from collections.abc import Sequence

from dpal.errors import InvalidArgument
from dpal.planning.plan import Plan
from dpal.planning.planners import make_plan
from dpal.planning.setting import MEAN_SCORE, Setting, default_delta, equal_queries
from dpal.privacy import checks
from dpal.privacy.accountants import DEFAULT_ACCOUNTANT

DEFAULT_POOL_SIZE = 50_000
DEFAULT_PHASES = 5
DEFAULT_EPOCHS = 30.0
DEFAULT_PLANNER = "step-amplification"


def plan(
    *,
    target_epsilon: float,
    target_delta: float | None = None,
    pool_size: int = DEFAULT_POOL_SIZE,
    initial_size: int | None = None,
    query_sizes: Sequence[int] | None = None,
    labelling_budget: int | None = None,
    phases: int | None = None,
    batch_size: int | None = None,
    epochs: float = DEFAULT_EPOCHS,
    selection: str = "threshold",
    selection_epsilon: float | None = None,
    selection_aim: str = MEAN_SCORE,
    acquisition_reads_training_data: bool = False,
    planner: str = DEFAULT_PLANNER,
    accounting: str | None = None,
    accountant: str = DEFAULT_ACCOUNTANT,
) -> Plan:
    """A certified plan for a campaign. Give query sizes, or a labelling budget and a number of training phases.

    The pool size counts the initial set too; epochs are for each training phase, of the records labelled by then.
    """
    setting = make_setting(
        target_epsilon=target_epsilon,
        target_delta=target_delta,
        pool_size=pool_size,
        initial_size=initial_size,
        query_sizes=query_sizes,
        labelling_budget=labelling_budget,
        phases=phases,
        batch_size=batch_size,
        epochs=epochs,
        selection=selection,
        selection_epsilon=selection_epsilon,
        selection_aim=selection_aim,
        acquisition_reads_training_data=acquisition_reads_training_data,
        accounting=accounting,
        accountant=accountant,
    )
    return make_plan(setting, planner)


def make_setting(
    *,
    target_epsilon: float,
    target_delta: float | None,
    pool_size: int,
    initial_size: int | None,
    query_sizes: Sequence[int] | None,
    labelling_budget: int | None,
    phases: int | None,
    batch_size: int | None,
    epochs: float,
    selection: str,
    selection_epsilon: float | None,
    selection_aim: str,
    acquisition_reads_training_data: bool,
    accounting: str | None,
    accountant: str,
) -> Setting:
    """The setting with every default filled in."""
    epsilon = checks.positive("target_epsilon", target_epsilon)
    pool = checks.count("pool_size", pool_size)
    if pool == 0:
        raise InvalidArgument("pool_size", pool_size, "at least 1: there is nothing to learn from an empty pool")
    initial = max(1, pool // 5) if initial_size is None else checks.count("initial_size", initial_size)
    if query_sizes is not None and (labelling_budget is not None or phases is not None):
        raise InvalidArgument("query_sizes", list(query_sizes), "left out where labelling_budget or phases is given")
    if query_sizes is None:
        budget = max(initial, pool // 2) if labelling_budget is None else labelling_budget
        queries = (DEFAULT_PHASES if phases is None else checks.count("phases", phases)) - 1
        if queries < 0:
            raise InvalidArgument("phases", phases, "a whole number of at least 1")
        sizes = equal_queries(budget, initial, queries)
    else:
        sizes = tuple(query_sizes)
    is_free = selection in ("random", "none") or not sizes
    return Setting(
        target_epsilon=epsilon,
        target_delta=default_delta(pool) if target_delta is None else target_delta,
        pool_size=pool,
        initial_size=initial,
        query_sizes=sizes,
        free_query_sizes=query_sizes is None,
        # About 40% of the initial set, as in the paper, and no more than its 4,096.
        batch_size=max(1, min(4096, round(0.4 * initial))) if batch_size is None else batch_size,
        epochs=epochs,
        selection=selection,
        selection_epsilon=(0.0 if is_free else epsilon / 4) if selection_epsilon is None else selection_epsilon,
        selection_aim=selection_aim,
        acquisition_reads_training_data=acquisition_reads_training_data,
        accounting=("basic" if acquisition_reads_training_data else "branch") if accounting is None else accounting,
        accountant=accountant,
    )
