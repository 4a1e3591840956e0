"""How fast plans are made, beside the paper's algorithm written plainly on Opacus's accountant, in processor time.

The paper's CIFAR-10 setting: ε 8, δ 1e-5, queries 10,000, 3,000, 1,000, 1,000 after 10,000, batch 4,096, 30 epochs a
phase, Laplace selection with ε 2; and the default plan, scouting with a private cut, of a pool of 50,000. Both with 2
to 40 phases too. With --quick the plain algorithm plans two phases instead of five, and PLD plans have at most 10.
"""

import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _report import Report, Timing, arguments, timed
from opacus.accountants import RDPAccountant

import dpal
from dpal.planning import rate_tables
from dpal.privacy import renyi

EPSILON, DELTA, BATCH, EPOCHS, SELECTION_EPSILON = 8.0, 1e-5, 4096, 30, 2.0
GROUPS = (10_000, 10_000, 3_000, 1_000, 1_000)


def opacus_epsilon(noise: float, steps: list[int], probabilities: list[float]) -> float:
    accountant = RDPAccountant()
    accountant.history = [(noise, q, n) for q, n in zip(probabilities, steps, strict=True)]
    return accountant.get_epsilon(DELTA)


def noise_multiplier(steps: list[int], probabilities: list[float]) -> float:
    """The paper's get_noiseMultiplier, precision 0.01."""
    low, high, high_epsilon = 0.0, 10.0, float("inf")
    while high_epsilon > EPSILON:
        high *= 2
        high_epsilon = opacus_epsilon(high, steps, probabilities)
    while EPSILON - high_epsilon > 0.01:
        noise = (low + high) / 2
        spent = opacus_epsilon(noise, steps, probabilities)
        if spent < EPSILON:
            high, high_epsilon = noise, spent
        else:
            low = noise
    return high


def sample_rate(target: float, noise: float, steps: list[int], probabilities: list[float]) -> float:
    """The paper's get_sampleRate, precision 0.001; it returns the unsafe end, as printed."""
    low, high = 1e-9, 1.0
    while low / high < 1 - 0.001:
        q = (low + high) / 2
        if opacus_epsilon(noise, steps, [*probabilities, q]) < target:
            low = q
        else:
            high = q
    return high


def papers_algorithm(groups: tuple[int, ...]) -> list[int]:
    """Algorithm 3 as the paper prints it (with the midpoint mended, or it would not end); returns the steps."""
    labelled = [sum(groups[: i + 1]) for i in range(len(groups))]
    probabilities = [BATCH / size for size in labelled]
    steps = [round(EPOCHS / q) for q in probabilities]
    noise = noise_multiplier(steps, probabilities)
    naive = list(steps)
    old = [probabilities[0]]
    for i in range(1, len(groups)):
        target = opacus_epsilon(noise, naive[: i + 1], probabilities[: i + 1])
        new_target = target - i * SELECTION_EPSILON / (len(groups) - 1)
        low, high = naive[i], 3 * naive[i]
        q_old = sample_rate(target, noise, steps[: i + 1], old)
        while high - low > 1:
            steps[i] = round((low + high) / 2)
            q_old = sample_rate(target, noise, steps[: i + 1], old)
            q_new = sample_rate(new_target, noise, [steps[i]], [])
            batch = q_old * labelled[i - 1] + q_new * groups[i]
            if abs(batch - BATCH) < 0.005 * BATCH:
                break
            low, high = (steps[i], high) if batch > BATCH else (low, steps[i])
        old.append(q_old)
    return steps


def cold(**request: Any) -> dpal.Plan:
    """A plan as in a new process: no table or curve is kept from the one before."""
    renyi._known_curves.clear()
    rate_tables.rate_table.cache_clear()
    return dpal.plan(**request)


def ours(groups: tuple[int, ...], accountant: str) -> dpal.Plan:
    return cold(
        target_epsilon=EPSILON,
        target_delta=DELTA,
        pool_size=2 * sum(groups),
        initial_size=groups[0],
        query_sizes=groups[1:],
        batch_size=BATCH,
        epochs=EPOCHS,
        selection="laplace",
        selection_epsilon=SELECTION_EPSILON,
        accounting="basic",
        accountant=accountant,
    )


def equal_groups_plan(phases: int, accountant: str) -> dpal.Plan:
    return ours((10_000, *(15_000 // (phases - 1),) * (phases - 1)), accountant)


def default(phases: int, accountant: str) -> dpal.Plan:
    return cold(target_epsilon=EPSILON, phases=phases, accountant=accountant)


def power(seconds: dict[int, float]) -> float:
    """The power of phases with which seconds grow, by least squares on a logarithmic scale."""
    slope, _ = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)
    return float(slope)


def processor(call: Callable[[], object], *, repetitions: int, warm_up: int = 1) -> Timing:
    # Others may be at work on the same processors.
    return timed(call, repetitions=repetitions, warm_up=warm_up, clock=time.process_time)


def main() -> None:
    options = arguments(__doc__)
    warnings.filterwarnings("ignore")
    report = Report(name="planning", packages=("opacus", "dp-accounting", "torch"))

    def add(what: str, timing: Timing, steps: list[int]) -> float:
        shown = ", ".join(map(str, steps)) if len(steps) <= 6 else f"{sum(steps)} in all"
        report.row(what=what, seconds=timing.median, fastest=timing.fastest, steps=shown)
        return timing.median

    def steps_of(plan: dpal.Plan) -> list[int]:
        return [phase.steps for phase in plan.phases]

    few = 3 if options.quick else 9
    rdp = add(
        "dpal, 5 phases, RDP", processor(lambda: ours(GROUPS, "rdp"), repetitions=few), steps_of(ours(GROUPS, "rdp"))
    )
    pld = add(
        "dpal, 5 phases, PLD", processor(lambda: ours(GROUPS, "pld"), repetitions=3), steps_of(ours(GROUPS, "pld"))
    )

    compared = GROUPS[:2] if options.quick else GROUPS
    same = add(
        f"dpal, {len(compared)} phases, RDP",
        processor(lambda: ours(compared, "rdp"), repetitions=few),
        steps_of(ours(compared, "rdp")),
    )
    plain_steps: list[int] = []

    def plain() -> None:
        plain_steps[:] = papers_algorithm(compared)

    plain_seconds = add(
        f"the paper's algorithm on Opacus, {len(compared)} phases",
        processor(plain, repetitions=1, warm_up=0),
        plain_steps,
    )
    grown: dict[str, dict[int, float]] = {}
    planners = {"step amplification": equal_groups_plan, "the default plan": default}
    for accountant, (name, planned) in itertools.product(("rdp", "pld"), planners.items()):
        seconds = grown[f"{name}, {accountant.upper()}"] = {}
        for phases in (2, 5, 10) if accountant == "pld" and options.quick else (2, 5, 10, 20, 40):
            made: list[dpal.Plan] = []
            timing = processor(
                lambda planned=planned, phases=phases, made=made, by=accountant: made.append(planned(phases, by)),
                repetitions=5 if accountant == "rdp" else 1,
                warm_up=0 if phases > 10 else 1,
            )
            seconds[phases] = add(f"{name}, {phases} phases, {accountant.upper()}", timing, steps_of(made[-1]))

    report.claim("step amplification with RDP, seconds", rdp, "< 0.3", rdp < 0.3)
    report.claim("step amplification with PLD, seconds", pld, "< 10", pld < 10)
    first = grown["the default plan, PLD"][2]
    report.claim("the default plan, seconds", first, "< 1.5", first < 1.5)
    ratio = plain_seconds / same
    report.claim(
        f"times faster than the paper's algorithm on Opacus ({len(compared)} phases)", ratio, "≥ 500", ratio >= 500
    )
    for name, seconds in grown.items():
        if name.endswith("PLD") and 40 in seconds:
            report.claim(f"{name}: seconds with 40 phases", seconds[40], "< 30", seconds[40] < 30)
    # Every phase has a rate for every group so far, so the number of rates grows with the square.
    for name, seconds in grown.items():
        growth = power(seconds)
        most = max(seconds)
        report.claim(f"{name}: time grows like phases to the power, 2 to {most}", growth, "≤ 1.15", growth <= 1.15)
    report.finish(options.json)


if __name__ == "__main__":
    main()
