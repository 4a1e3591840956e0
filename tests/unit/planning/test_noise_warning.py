"""When the noise is too much, in words, and changes that are checked by planning them."""

import re

import pytest

from dpal.planning.noise_warning import noise_warning, times
from dpal.planning.request import PlanRequest
from dpal.planning.signal import MOST_NOISE, noise_to_signal

RESNET9 = 2_440_514
# 5,216 X-rays, 800 labels: with a network from scratch, nothing was learned in five phases.
XRAYS = PlanRequest(target_epsilon=8, labelling_budget=800, phases=5, accountant="rdp")


def noise_of(parameters: int, pool_size: int = 5_216, **request: object) -> float:
    plan = PlanRequest(**{"target_epsilon": 8, "accountant": "rdp", **request}).plan(pool_size)  # type: ignore[arg-type]
    return noise_to_signal(plan.schedule, parameters)[-1].so_far


def test_enough_signal_needs_no_words() -> None:
    assert noise_warning(XRAYS, 5_216, 1_570) is None
    assert noise_warning(PlanRequest(target_epsilon=8, accountant="rdp"), 50_000, RESNET9) is None


def test_a_network_from_scratch_with_few_labels() -> None:
    words = noise_warning(XRAYS, 5_216, RESNET9, encoder_parameters=1_570)
    assert words is not None
    plan = XRAYS.plan(5_216)
    noise = noise_to_signal(plan.schedule, RESNET9)
    assert words.startswith(
        "Expect this model to learn little, and nothing if the task is hard: in a step of phase 1 the noise is "
    )
    assert f"the noise is {times(noise[0].in_a_step)} the largest possible signal of its 2,440,514" in words
    assert f"over all steps of the 5 phases {times(noise[-1].so_far)}." in words
    assert "a public encoder as the model, whose head has 1,570 parameters (0.0" in words
    # Neither fewer phases nor an ε up to 10 is enough, so neither is proposed.
    assert "instead of 5" not in words and "ε =" not in words
    labels = int(re.findall(r"([\d,]+) labels instead of 800", words)[0].replace(",", ""))
    # About the smallest number: that many are enough, and a tenth less are not.
    enough, fewer = (
        noise_of(
            RESNET9,
            initial_size=number - 4 * round(0.15 * number),
            query_sizes=(round(0.15 * number),) * 4,
        )
        for number in (labels, round(0.9 * labels))
    )
    assert enough <= MOST_NOISE < fewer


def test_fewer_phases_and_a_larger_epsilon_where_they_help() -> None:
    request = PlanRequest(
        target_epsilon=6, initial_size=200, query_sizes=(150,) * 4, selections="released", accountant="rdp"
    )
    parameters = 700_000
    words = noise_warning(request, 5_216, parameters)
    assert words is not None
    assert ": 1 phase instead of 5 (" in words
    epsilon = float(re.findall(r"ε = ([\d.]+) instead of 6", words)[0])
    released = {"selections": "released", "target_epsilon": 6}
    assert noise_of(parameters, **released, initial_size=800, query_sizes=()) <= MOST_NOISE
    assert noise_of(parameters, **released, initial_size=200, query_sizes=(600,)) > MOST_NOISE
    released |= {"initial_size": 200, "query_sizes": (150,) * 4}
    assert 6 < epsilon <= 10
    assert noise_of(parameters, **{**released, "target_epsilon": epsilon}) <= MOST_NOISE
    assert noise_of(parameters, **{**released, "target_epsilon": 0.9 * epsilon}) > MOST_NOISE


def test_where_nothing_helps_it_says_so() -> None:
    words = noise_warning(PlanRequest(target_epsilon=8, labelling_budget=60, accountant="rdp"), 80, RESNET9)
    assert words is not None
    assert words.endswith("Neither fewer phases, nor labelling the whole pool, nor an ε of up to 10 would be enough.")


@pytest.mark.parametrize(("ratio", "words"), [(14.4, "14 times"), (1.333, "1.3 times"), (1234.0, "1,200 times")])
def test_ratios_have_two_digits(ratio: float, words: str) -> None:
    assert times(ratio) == words
