"""What happens around training: records that change under a running campaign, and a model that is made twice.

Each attack is a small campaign of made-up records in a temporary folder, run and opened again as real ones are.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file
from torch import nn

from dpal.audit.attack import Attack, Effort, Finding, Target
from dpal.audit.claims import claim_of_plan
from dpal.campaign.campaign import Campaign
from dpal.campaign.fault_points import VARIABLE
from dpal.campaign.layout import CHECKPOINTS, checkpoint_name
from dpal.data.arrays import from_arrays
from dpal.data.pool import Pool
from dpal.errors import DamagedCampaign, DpalError
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest
from dpal.planning.spending import training_history
from dpal.privacy.accountants import PldAccountant

RECORDS, INITIAL, QUERY = 40, 16, 12
# The model is written, and the process dies before it is recorded that this phase has ended.
KILLED_AT = "train.checkpoint-written"
# Two models on one charge, with the same noise: their difference shows the record, whatever ε was promised.
_NO_PRIVACY = 100.0
_WIDTH = 4
_DATA, _CAMPAIGN, _SEEN = "records.npy", "campaign", "seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reordered:
    """A campaign whose file was reordered between two phases."""

    refused: bool
    charged: bool
    # Records that trained under two ids.
    twice: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTwice:
    """A phase that was resumed without its model and with another record."""

    refused: bool
    # How far the two models lie apart, as a gradient, in units of the clip; 0 if there is one model only.
    apart: float
    # What the noise alone would be, in the same units.
    noise: float


@dataclass(slots=True)
class _Answers:
    """The same answer for everyone, in so many rounds; later ones wait."""

    name: ClassVar[str] = "made-up"
    rounds: int

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, str] | None:
        del pool
        self.rounds -= 1
        return None if self.rounds < 0 else dict.fromkeys(ids, "no")


class ReorderedDataAttack(Attack):
    """Rows that are ids, in a file that is sorted between two phases."""

    name: ClassVar[str] = "reordered-data"
    what: ClassVar[str] = (
        "Someone sorts the file of a running campaign whose ids are row numbers, so that records train under two ids."
    )

    def run(self, target: Target, effort: Effort) -> Finding:
        del effort
        start, claim = time.monotonic(), claim_of_plan(target.plan)
        seen = reordered()
        return Finding(
            attack=self.name,
            what=self.what,
            claimed_epsilon=claim.epsilon,
            delta=claim.delta,
            epsilon_bound=epsilon_of_two_lives(target.plan) if seen.twice else 0.0,
            broken=seen.twice > 0,
            runs=1,
            seconds=time.monotonic() - start,
            note=f"the sorted file was refused {'after a charge' if seen.charged else 'before anything was charged'}"
            if seen.refused
            else f"the campaign went on, and {seen.twice} of {RECORDS} records trained under two ids",
        )


class ReplayedStepAttack(Attack):
    """A charge whose step is carried out a second time, on a record that was edited meanwhile."""

    name: ClassVar[str] = "replayed-step"
    what: ClassVar[str] = (
        "Someone takes away the model of a phase that was killed, edits one record under its id, and resumes: with the "
        "same noise, two models would differ by that record alone."
    )

    def run(self, target: Target, effort: Effort) -> Finding:
        del effort
        start, claim = time.monotonic(), claim_of_plan(target.plan)
        seen = made_twice()
        return Finding(
            attack=self.name,
            what=self.what,
            claimed_epsilon=claim.epsilon,
            delta=claim.delta,
            epsilon_bound=_NO_PRIVACY if seen.apart > 0 else 0.0,
            broken=seen.apart > 0,
            runs=1,
            seconds=time.monotonic() - start,
            note="the second training was refused"
            if seen.refused
            else f"two models on one charge, {seen.apart:.2f} clips apart, under noise of {seen.noise:.1f} clips",
        )


def reordered() -> Reordered:
    """Run one phase, sort the file, and go on."""
    with _scratch() as folder:
        plan = _plan(query_sizes=(QUERY,), batch_size=INITIAL // 2)
        _create(folder, plan, _Answers(1)).run()
        before = Campaign(folder / _CAMPAIGN).state()
        # Where each row is afterwards.
        order = np.arange(RECORDS)[::-1]
        np.save(folder / _DATA, np.load(folder / _DATA)[order])
        try:
            _opened(folder, _Answers(2)).run()
        # Refused for what was done to it, and not for anything else that may go wrong.
        except DamagedCampaign:
            after = Campaign(folder / _CAMPAIGN).state()
            return Reordered(refused=True, charged=after.charges != before.charges, twice=0)
        after = Campaign(folder / _CAMPAIGN).state()
        first = {int(name): name for name in before.trainable(0)}
        second = {int(order[int(name)]): name for group in range(len(after.groups)) for name in after.trainable(group)}
        twice = sum(second.get(record, name) != name for record, name in first.items())
        return Reordered(
            refused=False,
            charged=after.charges != before.charges,
            twice=twice if len(after.trained) > len(before.trained) else 0,
        )


def made_twice() -> MadeTwice:
    """Die when the model is written, take it away, edit a record that it was trained on, and resume."""
    with _scratch() as folder:
        # One step on every record of the initial set: the edited one is drawn for certain.
        plan = _plan(query_sizes=(), batch_size=INITIAL)
        _create(folder, plan, _Answers(1))
        killed(folder)
        written = _model_of(folder)
        seen = written.replace(folder / _SEEN)
        trained = int(Campaign(folder / _CAMPAIGN).state().trainable(0)[0])
        values = np.load(folder / _DATA)
        values[trained] *= -1
        np.save(folder / _DATA, values)
        (phase,) = plan.phases
        noise = phase.noise_multiplier * float(np.sqrt(2 * _WIDTH + 2))
        try:
            _opened(folder, _Answers(1)).run()
        except DamagedCampaign:
            return MadeTwice(refused=True, apart=0.0, noise=noise)
        apart = _distance(seen, folder / _CAMPAIGN / checkpoint_name(0)) * phase.expected_batch_size
        return MadeTwice(refused=False, apart=apart, noise=noise)


def epsilon_of_two_lives(plan: Plan) -> float:
    """What a plan costs a record that belongs to another group in each phase: the one that is drawn most often."""
    phases = tuple(replace(phase, sampling_probabilities=(max(phase.sampling_probabilities),)) for phase in plan.phases)
    return PldAccountant().epsilon(training_history(phases, 0), plan.setting.target_delta)


def carry_on(folder: str) -> None:
    """Run the scratch campaign in this process, which may be killed."""
    torch.set_num_threads(1)
    _opened(Path(folder), _Answers(1)).run()


def killed(folder: Path) -> None:
    """Run it in a process that dies at the fault point, as if the power had failed."""
    program = "import sys; from dpal.audit.changed_data import carry_on; carry_on(sys.argv[1])"
    done = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", program, str(folder)],
        env=os.environ | {VARIABLE: KILLED_AT},
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        raise DpalError(f"The process was to die at {KILLED_AT}, and did not: nothing can be said about replays.")


def _model_of(folder: Path) -> Path:
    """The model that was written before the process died. None: it died of something else."""
    written = [path for path in (folder / _CAMPAIGN / CHECKPOINTS).iterdir() if "phase-1" in path.name]
    if len(written) != 1:
        raise DpalError(
            f"The process was to die at {KILLED_AT}, and died before that: nothing can be said about replays. Does "
            "dpal demo run on this machine?"
        )
    return written[0]


@contextmanager
def _scratch() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="dpal-audit-") as folder:
        values = np.random.default_rng(3).normal(size=(RECORDS, _WIDTH)).astype(np.float32)
        np.save(Path(folder) / _DATA, 10 * values)
        yield Path(folder)


def _pool(folder: Path) -> Pool:
    # Without ids of their own: a record's id is the number of its row.
    values: NDArray[np.float32] = np.load(folder / _DATA)
    return from_arrays(values, classes=["no", "yes"])


def _plan(*, query_sizes: tuple[int, ...], batch_size: int) -> Plan:
    return PlanRequest(
        target_epsilon=8,
        target_delta=1e-3,
        initial_size=INITIAL,
        query_sizes=query_sizes,
        batch_size=batch_size,
        epochs=1,
        accountant="rdp",
        planner="step-amplification",
        # A cut might ask nobody in so small a pool.
        selection="random",
    ).plan(RECORDS)


def _model() -> nn.Module:
    model = nn.Linear(_WIDTH, 2)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


def _create(folder: Path, plan: Plan, answers: _Answers) -> Campaign:
    # One step of size 1 along the noisy gradient: weights are gradients.
    training = {"optimizer": "sgd", "learning_rate": 1.0, "average": None, "device": "cpu"}
    campaign, pool = folder / _CAMPAIGN, _pool(folder)
    return Campaign.create(campaign, plan=plan, pool=pool, model=_model(), oracle=answers, training=training)


def _opened(folder: Path, answers: _Answers) -> Campaign:
    return Campaign.open(folder / _CAMPAIGN, pool=_pool(folder), model=_model(), oracle=answers)


def _distance(one: Path, other: Path) -> float:
    first, second = load_file(one), load_file(other)
    return float(np.sqrt(sum(np.square(first[name].astype(np.float64) - second[name]).sum() for name in first)))
