"""One run measures the weights and their average: which of them predicts can be switched at any time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from dpal.data.records import ArrayRecords
from dpal.experiments.tracking_learner import TrackingLearner, tracking
from dpal.training.learner import Learner
from dpal.training.settings import ComputeSettings, TrainingSettings

RECORDS = ArrayRecords(np.eye(3, dtype=np.float32))


def plain(records: ArrayRecords) -> Learner:
    model = nn.Linear(3, 3, bias=False)
    model.weight.data.copy_(torch.eye(3))
    settings = TrainingSettings(learning_rate=0.25)
    return Learner(model, records, multi_label=False, settings=settings, compute=ComputeSettings(device="cpu"))


@pytest.fixture
def learner() -> TrackingLearner:
    """Weights of 3 on the diagonal, and an average that still has something of the 1 it began with."""
    made = tracking(plain, decay=0.5, predicts_with_average=False)(RECORDS)
    made.model.weight.data.mul_(3)
    made.average.update()
    return made


def test_the_average_is_kept_whichever_predicts(learner: TrackingLearner) -> None:
    assert learner.logits_of(RECORDS)[0, 0] == 3
    learner.predicts_with_average = True
    # The first decay is 2/11.
    assert learner.logits_of(RECORDS)[0, 0] == pytest.approx(1 * 2 / 11 + 3 * 9 / 11)
    learner.predicts_with_average = False
    assert learner.logits_of(RECORDS)[0, 0] == 3


def test_both_are_in_the_file(learner: TrackingLearner, tmp_path: Path) -> None:
    learner.save(tmp_path / "w")
    again = tracking(plain, decay=0.5, predicts_with_average=True)(RECORDS)
    again.load(tmp_path / "w")
    assert again.logits_of(RECORDS)[0, 0] == pytest.approx(29 / 11)
    again.predicts_with_average = False
    assert again.logits_of(RECORDS)[0, 0] == 3


def test_other_settings_stay(learner: TrackingLearner) -> None:
    assert (learner.settings.learning_rate, learner.settings.average) == (0.25, 0.5)
    assert learner.compute == ComputeSettings(device="cpu")
