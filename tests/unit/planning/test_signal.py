"""Noise against the largest possible signal, compared with vectors that are added up one by one."""

import math

import numpy as np
import pytest

import dpal
from dpal.errors import InvalidArgument
from dpal.planning.objective import objective
from dpal.planning.plan import Phase, Schedule
from dpal.planning.signal import noise_to_signal


def schedule(*phases: Phase) -> Schedule:
    return Schedule(phases=phases, selections=())


def phase(steps: int, noise: float, batch: int) -> Phase:
    return Phase.of(steps, noise, (0.5,), (2 * batch,))


def test_noise_that_is_drawn_is_as_large_as_said() -> None:
    steps, noise, batch, parameters = 16, 3.0, 20, 10_000
    said = noise_to_signal(schedule(phase(steps, noise, batch)), parameters)[0]
    drawn = noise * np.random.default_rng(0).standard_normal((steps, parameters))
    # Every clipped gradient has the norm 1 and the same direction: a step's signal has the norm of the batch.
    assert np.linalg.norm(drawn[0]) / batch == pytest.approx(said.in_a_step, rel=0.03)
    assert np.linalg.norm(drawn.sum(axis=0)) / (steps * batch) == pytest.approx(said.so_far, rel=0.03)


def test_phases_add_up_as_the_objective_does() -> None:
    made = schedule(phase(10, 2.0, 30), phase(40, 1.5, 60))
    first, last = noise_to_signal(made, 500)
    assert first.so_far == pytest.approx(first.in_a_step / math.sqrt(10))
    value = sum(part.steps * (part.expected_batch_size / part.noise_multiplier) ** 2 for part in made.phases)
    assert last.so_far == pytest.approx(math.sqrt(500 / value))
    # With random labels, records have no weights, and the objective is the same sum.
    plan = dpal.plan(target_epsilon=8, pool_size=2_000, labelling_budget=800, phases=1, accountant="rdp")
    ratio = noise_to_signal(plan.schedule, 700)[-1].so_far
    assert ratio == pytest.approx(math.sqrt(700 / objective(plan.schedule, plan.setting.group_sizes)))


def test_a_model_without_parameters_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="parameters is 0, but must be at least 1"):
        noise_to_signal(schedule(phase(1, 1.0, 1)), 0)
