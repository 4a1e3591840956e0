"""A phase that is sent to another process is the same phase there, and shows nothing private."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rank_campaigns import create

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.phase_task import PhaseTask, ids_digest
from dpal.campaign.phase_worker import PhaseWorker
from dpal.campaign.reader import Reader
from dpal.campaign.state import fold
from dpal.campaign.step_randomness import fresh_key
from dpal.errors import DamagedCampaign
from dpal.training.checkpoints import load_weights
from dpal.training.processes import OneProcess


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("finished") / "campaign"
    create(folder).run()
    return Campaign.open(folder)


@pytest.fixture(scope="module")
def task(finished: Campaign) -> PhaseTask:
    """The second phase, as it was when it was charged."""
    state, runner = finished.state(), finished.runner
    ordinal, (number, _) = next(
        (place, charge)
        for place, charge in enumerate(state.charges)
        if isinstance(charge[1], ChargedTraining) and charge[1].phase == 1
    )
    seen = fold(finished.reader.recorded[:number])
    key = fresh_key(7, ordinal)
    return PhaseTask.of(1, finished.schedule, seen, runner.parts.pool, runner.units, key=key)


def test_it_arrives_as_it_was_sent(task: PhaseTask) -> None:
    arrived, weights, snapshot = PhaseTask.from_bytes(task.to_bytes(b"weights"))
    assert (weights, snapshot) == (b"weights", None)
    assert PhaseTask.from_bytes(task.to_bytes(b"weights", b"snapshot"))[2] == b"snapshot"
    assert arrived.phase == task.phase
    assert (arrived.key, arrived.seed, arrived.withdrawn) == (task.key, 7, frozenset())
    assert (arrived.number, arrived.phases, arrived.later_records) == (1, 2, 0)
    assert [group.tolist() for group in arrived.groups] == [group.tolist() for group in task.groups]
    assert task.units is not None
    assert arrived.units is not None
    for sent, received in ((task.targets, arrived.targets), (task.units, arrived.units)):
        assert received.dtype == sent.dtype
        assert np.array_equal(received, sent)


def test_nothing_private_is_shown(task: PhaseTask) -> None:
    shown = repr(task)
    for private in ("key", "groups", "targets", "units", "withdrawn", "pool"):
        assert f"{private}=" not in shown


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_another_process_trains_the_recorded_model_and_writes_nothing(finished: Campaign, task: PhaseTask) -> None:
    folder = finished.folder
    learner = finished.runner.parts.learner(finished.runner.parts.inputs)
    first, second = (folder / trained.file for trained in finished.state().trained)
    load_weights(first, learner.model, learner.average)
    before = files_of(folder)
    trained = PhaseWorker(Reader(folder), OneProcess()).train(task.to_bytes(learner.weights()))
    assert trained.weights() == second.read_bytes()
    assert files_of(folder) == before


def test_a_process_with_other_records_is_refused(finished: Campaign, task: PhaseTask) -> None:
    pool = finished.runner.parts.pool
    other = replace(task, pool=ids_digest(pool.take(pool.ids[::-1])))
    with pytest.raises(DamagedCampaign, match="other records, or another order"):
        PhaseWorker(Reader(finished.folder), OneProcess()).train(other.to_bytes(b""))
