"""One phase of a plan: rates for every group, and steps or noise that land the expected batch size on its target."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpal.errors import NoPlan
from dpal.planning.certify import made_phase
from dpal.planning.plan import Phase
from dpal.planning.rates import RateTable, conversion

Array = NDArray[np.float64]

_MOST_ROUNDS = 25
_MOST_STEPS = 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTask:
    """What is asked of a phase."""

    sizes: tuple[int, ...]
    batch_size: int
    noise_multiplier: float
    # The wanted ε of each group after this phase, and the part of it that is out of training's reach.
    targets: Array
    offsets: Array
    # Rényi curves of what each group has been through, at the table's orders.
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
    phase: Phase
    # The Rényi targets that led here: where the next phase may start from.
    corrections: Array


def solve_phase(task: PhaseTask, corrections: Array) -> SolvedPhase:
    """A phase in which no group ends above its target.

    The table proposes rates for Rényi targets; the certifier's answer corrects the targets; and so on until
    every group is just under its target and the expected batch size is on its own.
    """
    corrections = corrections.copy()
    best: tuple[float, Phase] | None = None
    steps = task.fixed_steps
    noise = task.noise_multiplier
    aim = task.targets * (1 - task.tolerance / 2)
    for round_number in range(_MOST_ROUNDS):
        goals = task.targets + corrections - task.offsets
        room = goals[:, None] - conversion(task.orders, task.delta) - task.spent_curves
        _require_room(task, room, goals)
        if steps is None or (task.fixed_steps is None and round_number in (1, 2)):
            steps = _fewest_steps(task, room)
            noise = task.noise_multiplier
        noise, rates = _noise_for_batch(task, room, steps, noise)
        phase = made_phase(steps, noise, tuple(float(rate) for rate in rates), task.sizes)
        spent = task.certify(phase)
        excess = float((spent / task.targets).max())
        # A rate of 1 cannot go higher: such a group may end below its target.
        reached = (spent >= task.targets * (1 - task.tolerance)) | (rates >= 1)
        off_batch = abs(phase.expected_batch_size / task.batch_size - 1)
        if excess <= 1 and reached.all() and (off_batch < 2e-3 or (task.fixed_steps is None and (rates >= 1).any())):
            return SolvedPhase(phase=phase, corrections=corrections)
        if excess <= 1 and (best is None or off_batch + (1 - excess) < best[0]):
            best = (off_batch + (1 - excess), phase)
        wanted = aim - spent
        corrections += np.where((rates >= 1) & (wanted > 0), 0.0, wanted)
    if best is None:
        raise NoPlan(
            f"No sampling rates were found for a phase of {len(task.sizes)} groups. "
            "Please report this setting; a smaller selection ε or a larger batch may help."
        )
    return SolvedPhase(phase=best[1], corrections=corrections)


def _require_room(task: PhaseTask, room: Array, goals: Array) -> None:
    starved = np.flatnonzero(room.max(axis=1) <= 0)
    if starved.size:
        group = int(starved[0])
        raise NoRoom(group=group, available=float(task.targets[group]), taken=float(task.offsets[group]))


class NoRoom(NoPlan):
    """A group's selection costs leave nothing for its training."""

    def __init__(self, *, group: int, available: float, taken: float) -> None:
        super().__init__(
            f"Selection leaves group {group + 1} no training budget in its phase (ε {available:.3g} is due by then; "
            f"selection takes {taken:.3g})"
        )
        self.group = group
        self.available = available
        self.taken = taken


def _batch(task: PhaseTask, rates: Array) -> float:
    return float(rates @ np.asarray(task.sizes, dtype=np.float64))


def _fewest_steps(task: PhaseTask, room: Array) -> int:
    """The fewest steps whose rates keep the expected batch within its target: more steps, lower rates."""
    table = RateTable.of(task.noise_multiplier, task.orders)

    def fits(steps: int) -> bool:
        return _batch(task, table.rates(room, steps)) <= task.batch_size

    high = 1
    while not fits(high):
        high *= 2
        if high > _MOST_STEPS:
            raise NoPlan(f"A batch of {task.batch_size:,} would need more than {_MOST_STEPS:,} steps in one phase.")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _noise_for_batch(task: PhaseTask, room: Array, steps: int, start: float) -> tuple[float, Array]:
    """The noise multiplier near the start at which the rates give the wanted batch: more noise, higher rates."""
    noise = start
    rates = np.zeros(len(task.sizes))
    for _ in range(6):
        table = RateTable.of(noise, task.orders)
        rates = table.rates(room, steps)
        batch = _batch(task, rates)
        if batch <= 0:
            break
        change = task.batch_size / batch
        if abs(change - 1) < 5e-4:
            break
        # Rates go about like the noise, so one or two of these corrections are enough.
        noise *= min(max(change, 0.2), 5.0)
        if (rates >= 1).all() and change > 1:
            break
    return noise, rates


def start_corrections(groups: int, ratio: float, targets: Array) -> Array:
    """Rényi accounting says `ratio` times what the certifier says; start there."""
    return (ratio - 1) * targets[:groups] if math.isfinite(ratio) else np.zeros(groups)
