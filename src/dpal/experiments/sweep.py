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
from dpal.experiments.measurements import phases_of, selections_of
from dpal.experiments.results import Results
from dpal.experiments.runs import AVERAGE_DECAY, Experiment, Run
from dpal.experiments.scales import SCALES
from dpal.experiments.tracking_learner import TrackingLearner, tracking
from dpal.models.registry import build_model
from dpal.planning.plan import Plan
from dpal.planning.request import plan
from dpal.training.settings import ComputeSettings

_PLANNING_REPEATS = 10


def with_copies(compute: ComputeSettings, copies: int) -> ComputeSettings:
    """The batch on the device counts images: augmented copies must not need more memory."""
    return replace(compute, max_physical_batch_size=max(1, compute.max_physical_batch_size // copies))


@dataclass(slots=True, kw_only=True)
class Sweep:
    """Runs of one scale. Several processes may share the folders: a run that another one works on is skipped."""

    folder: Path
    results: Results
    scale: str
    # Where the runs are computed. It is recorded, and is not part of what a run is.
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    tell: Callable[[str], None] = lambda words: None
    _pools: dict[str, tuple[Pool, Pool]] = field(default_factory=dict[str, tuple[Pool, Pool]], init=False)

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise InvalidArgument("scale", self.scale, f"one of {', '.join(SCALES)}")

    def run(self, experiment: Experiment, *, seeds: Sequence[int] = (), rows: Sequence[str] = ()) -> dict[str, str]:
        """All runs of an experiment, seed by seed, each with its outcome: done, there already, or busy."""
        unknown = set(rows) - {name for row in experiment.rows for name in (row.name, row.full_name, row.task)}
        if unknown:
            known = ", ".join(row.full_name for row in experiment.rows)
            raise InvalidArgument("the rows", sorted(unknown), f"among {known}")
        self.tell(f"scale {self.scale}: {SCALES[self.scale].words}")
        outcomes: dict[str, str] = {}
        for seed in seeds or experiment.seeds:
            for row in experiment.rows:
                if not rows or {row.name, row.full_name, row.task} & set(rows):
                    run = Run(row=row, scale=self.scale, seed=seed)
                    outcomes[run.name] = self.one(run)
        return outcomes

    def one(self, run: Run) -> str:
        """One run, unless its result exists or another process works on it."""
        if self.results.read(run) is not None:
            return "there already"
        run_folder = self.folder / run.scale / run.name
        run_folder.mkdir(parents=True, exist_ok=True)
        try:
            with only_writer(run_folder):
                # Another process may have finished it just before the lock was ours.
                if self.results.read(run) is not None:
                    return "there already"
                self.tell(run.name)
                measured = _planning(run) if run.row.plan_only_phases is not None else self._campaign(run, run_folder)
                self.results.write(run, measured)
        except CampaignBusy:
            return "busy"
        return "done"

    def _campaign(self, run: Run, run_folder: Path) -> dict[str, Any]:
        started = time.monotonic()
        pool, tested = self._pools_of(run)
        # Named by its settings: a campaign that was started with other settings is a different one.
        folder = run_folder / f"campaign-{run.hash()[:12]}"
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
            raise TypeError("the learner is not a TrackingLearner")
        return {
            "device": learner.device_name(),
            # The campaign's own: it may have been started on another machine.
            "precision": campaign.config.training.precision,
            "plan": _plan(campaign.plan, campaign.state().created.plan_hash),
            "labels": status.internal.labelled,
            "verified": verification.holds,
            "epsilon_spent": verification.epsilon_spent,
            "phases": phases_of(campaign, learner),
            "selections": selections_of(campaign, learner, predicts_with_average=with_average),
            # After an interruption, only of the last stretch.
            "seconds": time.monotonic() - started,
            "phases_before_interruption": resumed,
        }

    def _created(self, run: Run, folder: Path, pool: Pool, tested: Pool, model: object) -> Campaign:
        training = run.training()
        arguments: dict[str, Any] = {**run.plan_arguments(), "pool_size": len(pool)}
        return Campaign.create(
            folder,
            plan=plan(**arguments),
            pool=pool,
            model=model,
            acquisition=run.row.acquisition,
            oracle="simulated",
            evaluation=tested,
            evaluation_is_public=True,
            training=training,
            compute=with_copies(self.compute, training.augmentation.copies),
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
    """The time that planning takes, measured several times."""
    arguments = run.plan_arguments()
    seconds: list[float] = []
    for _ in range(_PLANNING_REPEATS):
        started = time.perf_counter()
        plan(**arguments)
        seconds.append(time.perf_counter() - started)
    return {"device": "cpu", "planning_seconds": seconds}
