"""Running experiments: each run a campaign in its own folder, claimed by a lock, and never repeated once finished."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpal.campaign.campaign import Campaign
from dpal.campaign.layout import DATABASE
from dpal.campaign.lock import only_writer
from dpal.data import Pool
from dpal.errors import CampaignBusy, InvalidArgument
from dpal.experiments.measures import phases_of, selections_of
from dpal.experiments.results import Results
from dpal.experiments.runs import AVERAGE_DECAY, Experiment, Run
from dpal.experiments.scales import SCALES
from dpal.experiments.tracking import TrackingLearner, tracking
from dpal.models.registry import build_model
from dpal.planning import api
from dpal.planning.plan import Plan

_PLANNING_REPEATS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where and how it is computed. It is recorded, and no part of what a run is."""

    device: str = "auto"
    precision: str = "float32"
    max_physical_batch_size: int = 512

    def training(self, copies: int) -> dict[str, Any]:
        """For the training section. The batch on the device counts images, so that copies do not need more memory."""
        return {
            "device": self.device,
            "precision": self.precision,
            "max_physical_batch_size": max(1, self.max_physical_batch_size // copies),
        }


@dataclass(slots=True, kw_only=True)
class Sweep:
    """Runs of one scale. Several processes may sweep the same folders: a run in another one's hands is left to it."""

    folder: Path
    results: Results
    scale: str
    machine: Machine = field(default_factory=Machine)
    tell: Callable[[str], None] = lambda words: None
    _pools: dict[str, tuple[Pool, Pool]] = field(default_factory=dict[str, tuple[Pool, Pool]], init=False)

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise InvalidArgument("scale", self.scale, f"one of {', '.join(SCALES)}")

    def run(self, experiment: Experiment, *, seeds: Sequence[int] = (), rows: Sequence[str] = ()) -> dict[str, str]:
        """All runs of an experiment, seed by seed; says of each whether it was done, there already, or busy."""
        unknown = set(rows) - {name for row in experiment.rows for name in (row.name, row.full_name, row.task)}
        if unknown:
            known = ", ".join(row.full_name for row in experiment.rows)
            raise InvalidArgument("the rows", sorted(unknown), f"of {known}")
        self.tell(f"scale {self.scale}: {SCALES[self.scale].words}")
        found: dict[str, str] = {}
        for seed in seeds or experiment.seeds:
            for row in experiment.rows:
                if not rows or {row.name, row.full_name, row.task} & set(rows):
                    run = Run(row=row, scale=self.scale, seed=seed)
                    found[run.name] = self.one(run)
        return found

    def one(self, run: Run) -> str:
        """One run, unless its result is there or another process is at it."""
        if self.results.read(run) is not None:
            return "there already"
        place = self.folder / run.scale / run.name
        place.mkdir(parents=True, exist_ok=True)
        try:
            with only_writer(place):
                # Another process may have finished it between the look and the lock.
                if self.results.read(run) is not None:
                    return "there already"
                self.tell(run.name)
                measured = _planning(run) if run.row.plan_only_phases is not None else self._campaign(run, place)
                self.results.write(run, measured)
        except CampaignBusy:
            return "busy"
        return "done"

    def _campaign(self, run: Run, place: Path) -> dict[str, Any]:
        started = time.monotonic()
        pool, tested = self._pools_of(run)
        # By its settings: a campaign that was begun with others is another one.
        folder = place / f"campaign-{run.hash()[:12]}"
        with_average = run.row.average is not None
        model = build_model(run.task.model, run.model_options(), seed=run.seed)
        if not (folder / DATABASE).is_file():
            campaign = self._created(run, folder, pool, tested, model)
        else:
            campaign = Campaign.open(
                folder, pool=pool, model=model, evaluation=tested, evaluation_is_public=True, oracle="simulated"
            )
        campaign.parts = replace(
            campaign.parts,
            learner=tracking(
                campaign.parts.learner, decay=run.row.average or AVERAGE_DECAY, predicts_with_average=with_average
            ),
            evaluated_classes=run.task.evaluated_classes if tested.multi_label else None,
            tell=self._tell_inside,
        )
        resumed = campaign.status().phases_done
        status = campaign.run()
        verification = campaign.verify()
        learner = campaign.parts.learner(campaign.parts.inputs)
        if not isinstance(learner, TrackingLearner):
            raise TypeError("the learner does not track")
        return {
            "device": learner.device_name(),
            # Of the campaign: it may have been begun on another machine.
            "precision": campaign.config.training.precision,
            "plan": _plan(campaign.plan, campaign.state().created.plan_hash),
            "labels": status.internal.labelled,
            "verified": verification.holds,
            "epsilon_spent": verification.epsilon_spent,
            "phases": phases_of(campaign, learner),
            "selections": selections_of(campaign, learner, predicts_with_average=with_average),
            # Of an interrupted run only the last part is known.
            "seconds": time.monotonic() - started,
            "phases_before_interruption": resumed,
        }

    def _created(self, run: Run, folder: Path, pool: Pool, tested: Pool, model: object) -> Campaign:
        training = run.training()
        copies = int(training.get("augmentation", {}).get("copies", 1))
        arguments: dict[str, Any] = {**run.plan_arguments(), "pool_size": len(pool)}
        return Campaign.create(
            folder,
            plan=api.plan(**arguments),
            pool=pool,
            model=model,
            acquisition=run.row.acquisition,
            oracle="simulated",
            evaluation=tested,
            evaluation_is_public=True,
            training={**training, **self.machine.training(copies)},
            text=run.task.text,
            seed=run.seed,
            not_private=True,
        )

    def _tell_inside(self, words: str) -> None:
        self.tell(f"  {words}")

    def _pools_of(self, run: Run) -> tuple[Pool, Pool]:
        task = run.task
        if task.name not in self._pools:
            self._pools[task.name] = (task.pool(), task.tested())
        return self._pools[task.name]


def _plan(plan: Plan, plan_hash: str) -> dict[str, Any]:
    return {
        "hash": plan_hash,
        "planner": plan.planner,
        "epsilon": plan.epsilon,
        "steps": sum(phase.steps for phase in plan.phases),
        "remark": plan.remark,
        "selections": [selection.to_json() for selection in plan.selections],
    }


def _planning(run: Run) -> dict[str, Any]:
    """The time of planning alone, several times over."""
    arguments = run.plan_arguments()
    seconds: list[float] = []
    for _ in range(_PLANNING_REPEATS):
        started = time.perf_counter()
        api.plan(**arguments)
        seconds.append(time.perf_counter() - started)
    return {"device": "cpu", "planning_seconds": seconds}
