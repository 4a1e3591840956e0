"""A rehearsal: the very plan, model and number of labels on public records, before any private record is read."""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpal.campaign.campaign import Campaign
from dpal.campaign.chance import verdict_of
from dpal.campaign.config import CampaignConfig, read_config
from dpal.campaign.filled_in import FilledIn, filled_in
from dpal.campaign.layout import CONFIG, DATABASE
from dpal.campaign.parts import Parts, configured_pool, model_options, parts_of
from dpal.data.records import TextRecords
from dpal.data.unit_rule import in_no_unit_of_a_pool, with_units
from dpal.errors import DpalError, InvalidArgument, MissingData
from dpal.models.features import Features, seeded_head
from dpal.models.registry import build_model
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest
from dpal.planning.setting import RECORD
from dpal.rehearsal.stand_ins import StandIn, stand_in_for

RUNS = 3
# Enough to measure how fast an encoder is here.
_TIMED_RECORDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What campaigns with one ε came to on the stand-in: a value for each run."""

    target_epsilon: float
    # "cut" or another selection; "random" where all labels were drawn at random at once.
    selection: str
    # What the planner says of the plan.
    remark: str
    # By phase: metrics by name, each with one value per run.
    phases: tuple[dict[str, tuple[float, ...]], ...]
    # Runs whose last model was no better than chance.
    at_chance: int
    seconds: float

    @property
    def final(self) -> dict[str, tuple[float, ...]]:
        return self.phases[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The forecasts, and what they were made on."""

    stand_in: str
    is_like_the_pool: bool
    distinct_records: int
    # How many classes the public records have, and how many the pool has.
    classes: int
    pool_classes: int
    pool_size: int
    runs: int
    labelling_budget: int
    # The share of the measured records that has the most frequent class; None with several labels per record.
    majority: float | None
    # Seconds to encode the pool and the held-out set on this machine; 0 without an encoder.
    encoding_seconds: float
    forecasts: tuple[Forecast, ...]

    @property
    def is_at_chance(self) -> bool:
        """Whether most runs learned nothing with any ε that was asked for."""
        own = [forecast for forecast in self.forecasts if forecast.selection != "random"] or list(self.forecasts)
        return all(2 * forecast.at_chance > self.runs for forecast in own)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and how far single runs are from it; None for a single run."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None


def rehearse(
    source: Path,
    *,
    on: str | None = None,
    epsilons: Sequence[float] = (),
    runs: int = RUNS,
    with_random: bool = False,
    settings: Sequence[str] = (),
    tell: Callable[[str], None] = lambda words: None,
) -> Rehearsal:
    """Rehearse a configuration file, or a campaign that exists. Reads public records only, and charges nothing."""
    if runs < 1:
        raise InvalidArgument("--runs", runs, "at least 1")
    for epsilon in epsilons:
        if not 0 < epsilon < float("inf"):
            raise InvalidArgument("--epsilons", epsilon, "positive numbers")
    made, recorded = _source(source, settings, tell)
    stand_in = stand_in_for(made.config, made.parts, on, base=Path.cwd(), tell=tell)
    targets = epsilons or (made.request.target_epsilon,)
    plans = [_plan(made, epsilon, recorded) for epsilon in targets]
    if with_random:
        # Where a plan has no selections, its labels are random already.
        plans += [_random_labels(made, plan).plan(made.parts.pool.unit_count) for plan in plans if plan.selections]
    forecasts = tuple(_forecast(plan, made, stand_in, runs, tell) for plan in plans)
    return Rehearsal(
        stand_in=stand_in.name,
        is_like_the_pool=stand_in.is_like_the_pool,
        distinct_records=len(stand_in.pool),
        classes=len(stand_in.pool.classes),
        pool_classes=len(made.parts.pool.classes),
        runs=runs,
        pool_size=made.parts.pool.unit_count,
        labelling_budget=plans[0].setting.labelling_budget,
        majority=_majority(stand_in),
        encoding_seconds=_encoding_seconds(made.parts),
        forecasts=forecasts,
    )


def _source(source: Path, settings: Sequence[str], tell: Callable[[str], None]) -> tuple[FilledIn, Plan | None]:
    """What is rehearsed, with the recorded plan of a campaign that exists."""
    if source.is_dir() and not (source / DATABASE).is_file():
        raise MissingData(f"{source} is not a campaign's folder. Give one, or a YAML file as for dpal init --config.")
    if not source.is_dir():
        return filled_in(read_config(source, settings), source.parent, tell=tell), None
    if settings:
        raise InvalidArgument("--set", ", ".join(settings), "left out for a campaign, whose settings are recorded")
    campaign = Campaign(source)
    config = read_config(campaign.folder / CONFIG)
    if config.plan is None or config.model is None:
        raise DpalError(f"{source} was made in Python with a plan or a model that its configuration does not name.")
    parts = replace(parts_of(config, pool=configured_pool(config)), tell=tell)
    # With another ε the mean has another noise.
    stated = replace(config.plan, mean_noise_multiplier=None if config.plan.mean_noise_multiplier else 0.0)
    return FilledIn(config=config, parts=parts, request=config.plan, stated=stated), campaign.plan


def _plan(made: FilledIn, epsilon: float, recorded: Plan | None) -> Plan:
    if recorded is not None and epsilon == recorded.setting.target_epsilon:
        return recorded
    return made.request_for(epsilon).plan(made.parts.pool.unit_count)


def _random_labels(made: FilledIn, plan: Plan) -> PlanRequest:
    """As many labels and steps in all, with everything drawn at random at once."""
    return replace(
        made.request_for(plan.setting.target_epsilon),
        initial_size=plan.setting.initial_size,
        query_sizes=plan.setting.query_sizes,
        labelling_budget=None,
        phases=None,
        selection="random",
        selection_epsilon=None,
        selections=plan.setting.promise,
        planner="no-al",
    )


def _forecast(plan: Plan, made: FilledIn, stand_in: StandIn, runs: int, tell: Callable[[str], None]) -> Forecast:
    by_phase: list[dict[str, list[float]]] = []
    at_chance, started = 0, time.monotonic()
    selection = plan.setting.selection if plan.selections else "random"
    for run in range(runs):
        tell(f"rehearsing ε = {plan.setting.target_epsilon:g} with {selection} labels, run {run + 1} of {runs}")
        evaluated = _run(plan, made, stand_in, seed=run + 1)
        verdict = verdict_of(evaluated[-1])
        at_chance += verdict is not None and verdict.is_chance
        for number, fact in enumerate(evaluated):
            if number == len(by_phase):
                by_phase.append({name: [] for name in fact.metrics})
            for name, value in fact.metrics.items():
                by_phase[number].setdefault(name, []).append(value)
    return Forecast(
        target_epsilon=plan.setting.target_epsilon,
        selection=selection,
        remark=plan.remark,
        phases=tuple({name: tuple(values) for name, values in phase.items()} for phase in by_phase),
        at_chance=at_chance,
        seconds=(time.monotonic() - started) / runs,
    )


def _run(plan: Plan, made: FilledIn, stand_in: StandIn, *, seed: int) -> Sequence[Any]:
    """One simulated campaign in a folder that is removed afterwards; what was measured after each phase."""
    pool, held_out = stand_in.filling(plan.setting.pool_size, seed), stand_in.test
    if plan.setting.unit != RECORD:
        # A stand-in has one record for each unit.
        pool = with_units(pool, pool.ids.tolist(), name=plan.setting.unit, records=1)
        held_out = in_no_unit_of_a_pool(held_out)
    acquisition = replace(made.parts.acquisition, classes=len(pool.classes), multi_label=pool.multi_label)
    with tempfile.TemporaryDirectory(prefix="dpal-rehearsal-") as place:
        campaign = Campaign.create(
            Path(place) / "rehearsal",
            plan=plan,
            pool=pool,
            model=lambda: _model(made.config, made.parts, stand_in, seed),
            acquisition=acquisition,
            oracle="simulated",
            evaluation=held_out,
            evaluation_is_public=True,
            training=asdict(made.config.training),
            text=made.config.text,
            seed=seed,
            not_private=True,
        )
        campaign.run()
        return campaign.state().evaluated


def _model(config: CampaignConfig, parts: Parts, stand_in: StandIn, seed: int) -> Any:
    """The campaign's model, with an output for each of the stand-in's classes."""
    if config.model is None:
        raise DpalError("This campaign was made in Python with a model that its configuration does not name.")
    classes = len(stand_in.pool.classes)
    if parts.encoder is not None:
        hidden = Features(**config.model.options).hidden
        return seeded_head(parts.encoder, classes=classes, hidden=hidden, seed=seed)
    options = model_options(config.model, parts.pool, parts.inputs)
    return build_model(config.model.name, options | ({"classes": classes} if "classes" in options else {}), seed=seed)


def _majority(stand_in: StandIn) -> float | None:
    test = stand_in.test
    if test.multi_label or test.labels is None:
        return None
    return float(np.bincount(np.asarray(test.labels)[test.labelled()]).max() / test.labelled().sum())


def _encoding_seconds(parts: Parts) -> float:
    """How long the pool and the held-out set take, from a few synthetic records."""
    if parts.encoder is None:
        return 0.0
    if isinstance(parts.pool.records, TextRecords):
        batch: Any = [
            ("a text of about the length of a short sentence",) * len(parts.pool.records.texts[0])
        ] * _TIMED_RECORDS
    else:
        (form,) = parts.pool.records.form.values()
        batch = np.zeros((_TIMED_RECORDS, *form.shape), dtype=form.dtype)
    started = time.monotonic()
    parts.encoder.encode(batch)
    each = (time.monotonic() - started) / _TIMED_RECORDS
    return each * (len(parts.pool) + (0 if parts.evaluation_as_given is None else len(parts.evaluation_as_given)))
