"""What a user asks of a plan, with a default for everything but ε. Python, the command line and YAML all build this."""

import inspect
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from dpal.errors import InvalidArgument
from dpal.planning.plan import Plan
from dpal.planning.planners import PLANNERS, make_plan
from dpal.planning.setting import RECORD, Setting, default_delta, equal_queries
from dpal.privacy import checks
from dpal.privacy.accountants import ACCOUNTANTS, DEFAULT_ACCOUNTANT
from dpal.privacy.calibration import noise_multiplier_for
from dpal.privacy.rounding import rounded_up
from dpal.selection.registry import SELECTIONS, selection_kind
from dpal.selection.selection import AIMS, INSIDE, MEAN_SCORE, PROMISES, RELEASED, Selection, require_promise

DEFAULT_POOL_SIZE = 50_000
DEFAULT_PHASES = {INSIDE: 2, RELEASED: 5}
DEFAULT_EPOCHS = 30.0
# Steps of a head on an encoder, in all phases together, if a batch is the whole initial set (docs/encoders.md).
_HEAD_STEPS = 400
# Of a private mean of features: times the noise with which one release would spend the whole budget, the larger one
# where it moves the mean by little, in norms of a row. A mean that is moved too far is not worth its ε.
_MEAN_NOISES, _LITTLE_MOVED, _MOST_MOVED = (5.0, 3.0), 0.2, 1.0
# How many numbers an encoder of images makes of a record.
_WIDTH = 784
_DEFAULT_SELECTIONS = {INSIDE: "cut", RELEASED: "threshold"}


def _option(default: Any = ..., *, help: str, flag: str | None = None, metavar: str | None = None) -> Any:  # noqa: A002
    """A field with what the command line shows of it."""
    metadata = {"help": help, "flag": flag, "metavar": metavar}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The arguments of a plan, apart from the size of the pool. Give query sizes, or a labelling budget and phases."""

    # Read by pydantic: a name that is not a field is an error in YAML too.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    target_epsilon: float = _option(help="The ε of the promise, for training and selection together.", flag="--epsilon")
    target_delta: float | None = _option(
        None, help="The δ of the promise. Default: the power of ten at or below half of 1 / pool size.", flag="--delta"
    )
    initial_size: int | None = _option(
        None,
        help="Records labelled at the start. Default: a fifth of the pool; of --labelling-budget, where given, 40%.",
        flag="--initial",
    )
    query_sizes: tuple[int, ...] | None = _option(
        None, help="Sizes of the queries, such as 10000,3000,1000,1000.", flag="--queries", metavar="N,N,…"
    )
    labelling_budget: int | None = _option(None, help="Labels in all, instead of --queries. Default: half of the pool.")
    phases: int | None = _option(
        None, help="Training phases, instead of --queries. Default: 2; 5 with selections released."
    )
    batch_size: int | None = _option(
        None, help="The expected batch size. Default: 40% of the initial set, at most 4096."
    )
    epochs: float | None = _option(
        None, help="Epochs in each training phase. Default: 30; for heads on an encoder, about 400 steps in all phases."
    )
    selections: str | None = _option(
        None,
        help="inside: the chosen ids stay with you and the people who label (default). released: they are part of what "
        "is released, as in the paper.",
        metavar="|".join(PROMISES),
    )
    selection: str | None = _option(
        None,
        help=f"How records are chosen: {', '.join(SELECTIONS)}, or an import path. Default: cut; threshold with "
        "selections released.",
        metavar="NAME",
    )
    selection_epsilon: float | None = _option(
        None, help="The share of ε that selection may spend. Default: a tenth; a quarter with selections released."
    )
    selection_aim: str = _option(
        MEAN_SCORE,
        help="What threshold selection optimises: the mean score of what it takes, or overlap with the true top.",
        metavar="|".join(AIMS),
    )
    planner: str | None = _option(
        None,
        help=f"{', '.join(PLANNERS)}, or an import path. Default: scouting with the selection cut, otherwise "
        "step-amplification.",
        metavar="NAME",
    )
    accounting: str = _option("branch", help="basic (the paper's), renyi or branch (the tightest).", metavar="NAME")
    accountant: str = _option(
        DEFAULT_ACCOUNTANT,
        help="pld (tight) or rdp (comparable with the paper).",
        metavar="|".join(ACCOUNTANTS),
    )
    mean_noise_multiplier: float | None = _option(
        None,
        help="For heads on an encoder: the noise multiplier of a private mean of the pool's features; 0: no mean.",
        flag="--mean-noise",
    )
    scouting_epsilon_share: float | None = _option(
        None, help="The share of ε that the initial set spends on scouting. Default: 0.5; 0.7 for heads on an encoder."
    )
    scouting_steps_share: float | None = _option(
        None, help="The share of all steps that scouting takes. Default: 0.1; 0.3 for heads on an encoder."
    )

    unit: str | None = _option(
        None,
        help="What the promise protects one of, where several records belong to one: such as patient. All sizes then "
        "count patients. Default: record.",
        metavar="WORD",
    )

    def resolve(self, pool_size: int) -> Setting:
        """The setting for a pool of this size, the initial set included, with every default filled in."""
        epsilon = checks.positive("target_epsilon", self.target_epsilon)
        pool = checks.count("pool_size", pool_size)
        if pool == 0:
            raise InvalidArgument("pool_size", pool_size, "at least 1: there is nothing to learn from an empty pool")
        promise, kind = self._promise()
        initial = self._initial(pool, promise)
        sizes = self._query_sizes(pool, initial, DEFAULT_PHASES[promise])
        default_share = epsilon / (10 if promise == INSIDE else 4) if kind.spends_epsilon and sizes else 0.0
        return Setting(
            target_epsilon=epsilon,
            target_delta=default_delta(pool) if self.target_delta is None else self.target_delta,
            pool_size=pool,
            initial_size=initial,
            query_sizes=sizes,
            free_query_sizes=self.query_sizes is None,
            # About 40% of the initial set, as in the paper, and no more than its 4,096.
            batch_size=max(1, min(4096, round(0.4 * initial))) if self.batch_size is None else self.batch_size,
            epochs=DEFAULT_EPOCHS if self.epochs is None else self.epochs,
            promise=promise,
            selection=kind.kind_name(),
            selection_epsilon=default_share if self.selection_epsilon is None else self.selection_epsilon,
            selection_aim=self.selection_aim,
            accounting=self.accounting,
            accountant=self.accountant,
            mean_noise_multiplier=self.mean_noise_multiplier or None,
            scouting_epsilon_share=0.5 if self.scouting_epsilon_share is None else self.scouting_epsilon_share,
            scouting_steps_share=0.1 if self.scouting_steps_share is None else self.scouting_steps_share,
            unit=RECORD if self.unit is None else self.unit,
        )

    def _initial(self, pool: int, promise: str) -> int:
        if self.initial_size is not None:
            return checks.count("initial_size", self.initial_size)
        if promise == INSIDE and self.labelling_budget is not None:
            budget = checks.count("labelling_budget", self.labelling_budget)
            # A scout that knows less chooses worse than chance (benchmarks/active_learning.py).
            return budget if self.phases == 1 else max(1, round(0.4 * budget))
        return max(1, pool // 5)

    def _promise(self) -> tuple[str, type[Selection]]:
        """The promise and the kind of selection: each follows from the other where only one is given."""
        if self.selections is not None and self.selections not in PROMISES:
            raise InvalidArgument("selections", self.selections, f"one of {', '.join(PROMISES)}")
        if self.selection is None:
            promise = INSIDE if self.selections is None else self.selections
            return promise, selection_kind(_DEFAULT_SELECTIONS[promise])
        kind = selection_kind(self.selection)
        promise = kind.promises[0] if self.selections is None else self.selections
        require_promise(kind, promise)
        return promise, kind

    def _query_sizes(self, pool: int, initial: int, default_phases: int) -> tuple[int, ...]:
        if self.query_sizes is not None:
            if self.labelling_budget is not None or self.phases is not None:
                allowed = "left out where labelling_budget or phases is given"
                raise InvalidArgument("query_sizes", list(self.query_sizes), allowed)
            return tuple(self.query_sizes)
        budget = max(initial, pool // 2) if self.labelling_budget is None else self.labelling_budget
        queries = (default_phases if self.phases is None else checks.count("phases", self.phases)) - 1
        if queries < 0:
            raise InvalidArgument("phases", self.phases, "a whole number of at least 1")
        return equal_queries(budget, initial, queries)

    def for_encoder(self, pool_size: int, *, width: int = _WIDTH) -> "PlanRequest":
        """The request with defaults for a head on a public encoder, where it leaves them open (docs/encoders.md).

        Such heads learn from few large steps, and from features that are centred at a private mean of the pool.
        """
        setting = self.resolve(pool_size)
        batch = min(4096, setting.initial_size) if self.batch_size is None else self.batch_size
        # Steps of one epoch in every phase, with batches of the whole initial set.
        steps = sum(labelled / setting.initial_size for labelled in setting.labelled_by_phase)
        mean = self.mean_noise_multiplier
        if mean is None and self.accounting != "basic":
            alone = noise_multiplier_for(
                target_epsilon=setting.target_epsilon,
                target_delta=setting.target_delta,
                phases=((1.0, 1),),
                accountant=setting.certifier,
            )
            mean = _mean_noise(alone, pool_size, width)
        return replace(
            self,
            batch_size=batch,
            epochs=_HEAD_STEPS / steps if self.epochs is None else self.epochs,
            mean_noise_multiplier=mean,
            scouting_epsilon_share=0.7 if self.scouting_epsilon_share is None else self.scouting_epsilon_share,
            scouting_steps_share=0.3 if self.scouting_steps_share is None else self.scouting_steps_share,
        )

    def plan(self, pool_size: int) -> Plan:
        """The certified plan for a pool of this size."""
        setting = self.resolve(pool_size)
        return make_plan(setting, self.planner or _default_planner(setting))


def _mean_noise(alone: float, pool_size: int, width: int) -> float:
    """The noise of the mean's release (docs/encoders.md); 0, no mean, where the pool is too small for one."""
    more, less = (rounded_up(factor * alone, 1) for factor in _MEAN_NOISES)
    moved_by_one = math.sqrt(width) / pool_size
    if more * moved_by_one <= _LITTLE_MOVED:
        return more
    return less if less * moved_by_one <= _MOST_MOVED else 0.0


def _default_planner(setting: Setting) -> str:
    return "scouting" if setting.promise == INSIDE and setting.selection_pays else "step-amplification"


def plan(*, pool_size: int = DEFAULT_POOL_SIZE, **request: Any) -> Plan:
    """A certified plan for a campaign: the arguments are those of `PlanRequest`, and the size of the pool."""
    known = [option.name for option in fields(PlanRequest)]
    for name in request:
        if name not in known:
            raise TypeError(f"plan() has no argument {name!r}; it has pool_size, {', '.join(known)}.")
    if "target_epsilon" not in request:
        raise TypeError("plan() needs target_epsilon, the ε of the promise.")
    return PlanRequest(**request).plan(pool_size)


def _signature() -> inspect.Signature:
    """The arguments of `plan` as editors and help() show them: those of the request, and the size of the pool."""
    request = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(PlanRequest).parameters.values()
    ]
    pool_size = inspect.signature(plan).parameters["pool_size"]
    return inspect.Signature([request[0], pool_size, *request[1:]], return_annotation=Plan)


plan.__signature__ = _signature()  # pyright: ignore[reportFunctionMemberAccess]
