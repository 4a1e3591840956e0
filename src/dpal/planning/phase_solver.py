"""One phase of a plan: rates for every group, and steps or noise that land the expected batch size on its target."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpal.errors import NoPlan
from dpal.planning.plan import Phase
from dpal.planning.rate_tables import RateTable, rate_table
from dpal.privacy.renyi import conversion

Array = NDArray[np.float64]

_MOST_ROUNDS = 16
_MOST_STEPS = 10**8
_MOST_NOISE_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTask:
    """What is asked of a phase."""

    sizes: tuple[int, ...]
    batch_size: int
    noise_multiplier: float
    # The wanted ε of each group after this phase.
    targets: Array
    # Each group's ε before the phase, by the certifier; and Rényi curves of what it has been through, by the tables.
    spent: Array
    spent_curves: Array
    orders: Array
    delta: float
    # Fixed steps adjust the noise alone; otherwise steps come first and noise corrects them.
    fixed_steps: int | None
    # ε of every group after a candidate for this phase, by the accountant that certifies.
    certify: Callable[[Phase], Array]
    # How close under its target a group must end, relatively; the last phase wants more than the others.
    tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedPhase:
    """The phase, and ε of every group after it."""

    phase: Phase
    spent: Array


def solve_phase(task: PhaseTask) -> SolvedPhase:
    """A phase in which no group ends above its target.

    The tables propose rates for an increment of Rényi privacy; the certifier says what they cost; the increment is
    scaled by what it missed; and so on until every group is just under its target and the batch is on its own.
    """
    if task.targets[-1] <= task.spent[-1]:
        raise NoRoom(group=len(task.sizes), available=float(task.targets[-1]), taken=float(task.spent[-1]))
    to_epsilon = conversion(task.orders, task.delta)
    before = (task.spent_curves + to_epsilon).min(axis=1)
    increments = np.maximum(task.targets - task.spent, 1e-3 * task.targets)
    best: tuple[float, SolvedPhase] | None = None
    steps = task.fixed_steps
    noise = task.noise_multiplier
    aim = task.targets * (1 - task.tolerance / 2)
    last: tuple[Array, Array] | None = None
    for round_number in range(_MOST_ROUNDS):
        room = (before + increments)[:, None] - to_epsilon - task.spent_curves
        drifted = not _near(noise, task) and round_number < _MOST_ROUNDS // 2
        if steps is None or (task.fixed_steps is None and (round_number in (1, 2) or drifted)):
            steps = _fewest_steps(task, room)
            noise = task.noise_multiplier
        noise, rates = _noise_for_batch(task, room, steps, noise)
        phase = Phase.of(steps, noise, tuple(float(rate) for rate in rates), task.sizes)
        spent = task.certify(phase)
        excess = float((spent / task.targets).max())
        # A rate of 1 cannot go higher: such a group may end below its target.
        reached = (spent >= task.targets * (1 - task.tolerance)) | (rates >= 1)
        off_batch = abs(phase.expected_batch_size / task.batch_size - 1)
        # The noise should change only a little; otherwise the next round chooses the steps again.
        near = task.fixed_steps is not None or _near(noise, task) or round_number >= _MOST_ROUNDS // 2
        if excess <= 1 and reached.all() and near and (off_batch < 2e-3 or (rates >= 1).any()):
            return SolvedPhase(phase=phase, spent=spent)
        if excess <= 1 and (best is None or off_batch + (1 - excess) < best[0]):
            best = (off_batch + (1 - excess), SolvedPhase(phase=phase, spent=spent))
        proposed = _next_increments(aim - task.spent, increments, spent - task.spent, last)
        last = (increments, spent - task.spent)
        increments = np.where((rates >= 1) & (proposed > increments), increments, proposed)
    if best is None and task.spent[-1] > 0.2 * task.targets[-1]:
        raise NoRoom(group=len(task.sizes), available=float(task.targets[-1]), taken=float(task.spent[-1]))
    if best is None:
        raise NoPlan(
            f"no sampling rates were found that end phase {len(task.sizes)} within its ε of {task.targets[-1]:.3g}"
        )
    return best[1]


def _near(noise_multiplier: float, task: PhaseTask) -> bool:
    return abs(noise_multiplier / task.noise_multiplier - 1) < 0.01


def _next_increments(wanted: Array, increments: Array, got: Array, last: tuple[Array, Array] | None) -> Array:
    """Increments that should give what is wanted: by the line through the last two tries, or through the origin."""
    by_ratio = increments * np.clip(wanted / np.maximum(got, 1e-12), 0.1, 10.0)
    if last is None:
        return by_ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (got - last[1]) / (increments - last[0])
        by_line = increments + (wanted - got) / slope
        steepness = slope / (got / increments)
    trusted = np.isfinite(by_line) & (steepness > 0.2) & (steepness < 5) & (by_line > 0.1 * increments)
    return np.where(trusted & (by_line < 10 * increments), by_line, by_ratio)


class NoRoom(NoPlan):
    """A group's selection costs leave nothing for its training."""

    def __init__(self, *, group: int, available: float, taken: float) -> None:
        super().__init__(
            f"selection leaves group {group} too little training budget in phase {group}: "
            f"ε {available:.3g} is due by then, and selection takes {taken:.3g} of it"
        )


def _table(task: PhaseTask, noise_multiplier: float) -> RateTable:
    # One kind of table for a whole phase, or the search would jump between them.
    return rate_table(noise_multiplier, tuple(task.orders), exact=task.noise_multiplier >= 0.6)


def _batch(task: PhaseTask, rates: Array) -> float:
    return float(rates @ np.asarray(task.sizes, dtype=np.float64))


def _fewest_steps(task: PhaseTask, room: Array) -> int:
    """The fewest steps whose rates keep the expected batch within its target: more steps, lower rates."""
    table = _table(task, task.noise_multiplier)

    def fits(steps: int) -> bool:
        return _batch(task, table.rates(room, steps)) <= task.batch_size

    high = 1
    while not fits(high):
        high *= 2
        if high > _MOST_STEPS:
            raise NoPlan(f"a batch of {task.batch_size:,} would need more than {_MOST_STEPS:,} steps in one phase")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _noise_for_batch(task: PhaseTask, room: Array, steps: int, start: float) -> tuple[float, Array]:
    """The noise multiplier near the start at which the rates give the wanted batch: more noise, higher rates."""
    log_noise, elasticity = math.log(start), 1.0
    # Noise multipliers (as logarithms) known to give too small and too large a batch, with log(batch / wanted).
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    for _ in range(_MOST_NOISE_TRIES):
        rates = _table(task, math.exp(log_noise)).rates(room, steps)
        batch = _batch(task, rates)
        miss = math.log(batch / task.batch_size) if batch > 0 else -20.0
        if abs(miss) < 5e-4 or ((rates >= 1).all() and miss < 0):
            break
        low, high = ((log_noise, miss), high) if miss < 0 else (low, (log_noise, miss))
        if low is not None and high is not None:
            if high[0] - low[0] < 1e-9:
                break
            share = -low[1] / (high[1] - low[1])
            log_noise = low[0] + (high[0] - low[0]) * min(max(share, 0.1), 0.9)
        else:
            log_noise -= min(max(miss / elasticity, -1.0), 1.0)
            # Rates go about like the noise where it is large, and much faster where it is small.
            elasticity *= 0.7
    else:
        rates = _table(task, math.exp(log_noise)).rates(room, steps)
    return math.exp(log_noise), rates
