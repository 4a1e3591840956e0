"""Stand-ins are trained as a plan says, and a record that is absent leaves nothing but a blank seat."""

import numpy as np
import pytest
import torch
from phases import seeded
from small_audits import hardly_any_noise, memorable, small_plan

from dpal.audit.attack import Target
from dpal.audit.stand_in import (
    StandIn,
    digits,
    exported_logits,
    label_margin,
    linear_model,
    memorable_digits,
    new_learner,
    seats,
    train,
)
from dpal.errors import InvalidArgument

RECORDS = 60


def test_memorable_digits_are_all_alike_in_size_and_far_from_each_other() -> None:
    stand_in = memorable_digits()
    rows = np.asarray(stand_in.inputs, dtype=np.float64)
    assert len(stand_in) == len(rows) == len(digits()[1]) > 1_000
    assert np.linalg.norm(rows, axis=1) == pytest.approx(10, rel=1e-5)
    closeness = rows[:200] @ rows[:200].T / 100 - np.eye(200)
    assert np.abs(closeness).mean() < 0.1
    assert set(stand_in.labels.tolist()) == set(range(10))


def test_a_stand_in_needs_a_class_for_each_record() -> None:
    with pytest.raises(InvalidArgument, match="labels"):
        StandIn(inputs=np.zeros((3, 2)), labels=np.zeros(2, dtype=np.int64), make_model=lambda: linear_model(2, 2))


@pytest.mark.parametrize(("records", "seated"), [(500, 100), (100, 100), (40, 40)])
def test_seats_are_those_of_the_plan_or_in_proportion(records: int, seated: int) -> None:
    groups = seats(small_plan(1, 100), records, seeded())
    assert sum(map(len, groups)) == seated
    taken = np.concatenate(groups)
    assert len(set(taken.tolist())) == seated and taken.max() < records


def weights_after(present: np.ndarray, labels: np.ndarray, inputs: np.ndarray | None = None) -> torch.Tensor:
    stand_in = memorable(RECORDS, 20)
    if inputs is not None:
        stand_in = StandIn(inputs=inputs, labels=stand_in.labels, make_model=stand_in.make_model)
    plan = small_plan(1, RECORDS)
    learner = new_learner(Target(plan=plan, device="cpu"), stand_in)
    train(learner, plan, labels, [np.arange(RECORDS)], present, seeded())
    return next(learner.model.parameters()).detach()


def test_an_absent_record_leaves_no_trace_and_a_present_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    hardly_any_noise(monkeypatch)
    present = np.arange(RECORDS) != 7
    labels = memorable(RECORDS, 20).labels
    # The same randomness for both: only what record 7 holds is different.
    other_inputs, other_labels = memorable(RECORDS, 20).inputs.copy(), labels.copy()
    other_inputs[7], other_labels[7] = -other_inputs[7], (labels[7] + 1) % 3
    assert torch.equal(weights_after(present, labels), weights_after(present, other_labels, other_inputs))
    everyone = np.ones(RECORDS, dtype=np.bool_)
    assert not torch.allclose(weights_after(present, labels), weights_after(everyone, labels))


def test_what_is_exported_are_the_averaged_weights() -> None:
    stand_in, plan = memorable(RECORDS, 20), small_plan(1, RECORDS)
    learner = new_learner(Target(plan=plan, device="cpu"), stand_in)
    assert (exported_logits(learner) == 0).all()
    train(learner, plan, stand_in.labels, [np.arange(RECORDS)], np.ones(RECORDS, dtype=np.bool_), seeded())
    assert learner.average is not None
    weights = learner.average.average["weight"]
    assert exported_logits(learner) == pytest.approx((torch.from_numpy(stand_in.inputs) @ weights.T).numpy(), abs=1e-4)


def test_margins_are_logits_of_the_confidence() -> None:
    logits = np.array([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.0, 800.0, 0.0]])
    chance = np.exp(2) / np.exp([2, 0, -1]).sum()
    expected = [np.log(chance / (1 - chance)), np.log(0.5), 800 - np.log(2)]
    assert label_margin(logits, np.array([0, 1, 1])) == pytest.approx(expected)
