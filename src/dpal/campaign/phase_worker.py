"""What the other processes do while rank 0 runs a campaign: wait for a phase, train it with the others, wait again.

They read the campaign's folder and write nothing: no fact, no file, no progress, no line of a log but their own errors.
"""

import logging
import os
import sys
import traceback
from pathlib import Path

from dpal.campaign import fault_points
from dpal.campaign.parts import parts_of
from dpal.campaign.phase_task import PhaseTask, ids_digest
from dpal.campaign.reader import Reader
from dpal.campaign.runner import Runner
from dpal.errors import DamagedCampaign, DpalError, ProcessLost, TrainingDiverged
from dpal.training import progress
from dpal.training.learner import Learner
from dpal.training.phase_snapshot import GivenSnapshot
from dpal.training.process_group import ProcessGroup
from dpal.training.processes import Processes
from dpal.training.threads import fastest_threads


def work(folder: Path, *, rank: int, count: int, meeting_point: str) -> None:
    """Serve until rank 0 has nothing more to do."""
    progress.silence()
    logging.getLogger("dpal").setLevel(logging.CRITICAL)
    try:
        group = ProcessGroup(rank=rank, count=count, meeting_point=meeting_point)
        worker = PhaseWorker(Reader(folder), group)
        while message := group.receive():
            worker.train(message)
        group.close()
    except (ProcessLost, TrainingDiverged):
        # Rank 0 says so.
        _end()
    except DpalError as error:
        sys.stderr.write(f"process {rank + 1} of {count}: {error}\n")
        _end()
    except Exception:
        traceback.print_exc()
        _end()


class PhaseWorker:
    """A campaign's records and model in a process that is not rank 0."""

    def __init__(self, reader: Reader, processes: Processes) -> None:
        self.reader, self.processes = reader, processes
        self._runner: Runner | None = None
        # The withdrawn records, the settings and the records at hand that the runner was made for.
        self._made_for: tuple[frozenset[str], str, str] | None = None

    def train(self, message: bytes) -> Learner:
        """Carry out the phase that rank 0 has sent. What was learned is rank 0's to keep."""
        task, weights, snapshot = PhaseTask.from_bytes(message)
        runner = self._runner_for(task)
        learner = runner.parts.learner(runner.parts.inputs)
        learner.take_weights(weights)
        with fastest_threads(processes=self.processes.count):
            task.train(
                learner,
                processes=self.processes,
                snapshots=GivenSnapshot(snapshot),
                after_step=lambda step: fault_points.reached("worker.step"),
            )
        return learner

    def _runner_for(self, task: PhaseTask) -> Runner:
        """With the records and settings of the task: rank 0 has checked and encoded what is there."""
        needed = (task.withdrawn, task.settings, task.pool)
        if self._runner is None or self._made_for != needed:
            self.reader.state()
            # The held-out set is rank 0's.
            config = self.reader.config().model_copy(update={"evaluation": None})
            self._runner, self._made_for = Runner(self.reader, parts_of(config), read_only=True), needed
        if ids_digest(self._runner.parts.pool) != task.pool:
            raise DamagedCampaign(
                "This process finds other records, or another order of them, than the first one: the data changed "
                "while the campaign ran. Run it again once nothing writes to the data."
            )
        return self._runner


def _end() -> None:
    # At once: torch may be waiting for a process that is gone.
    sys.stderr.flush()
    os._exit(1)
