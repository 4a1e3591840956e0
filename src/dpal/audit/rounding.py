"""Floating point: the records, or units, by which one of them moves a clipped sum furthest, found by a search.

Every theorem assumes that one record moves the sum by at most max_grad_norm. Each construction is trained on with and
without its last record, by the code that trains campaigns, with the same randomness and next to no noise: how far the
released gradients lie apart is how far the record has moved the sum.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from dpal.audit.attack import Attack, Effort, Finding, Target, randomness_of
from dpal.audit.claims import claim_of_plan, history_of
from dpal.audit.worst_cases import TUNINGS, Construction, kinked, tied
from dpal.planning.plan import Phase, Plan
from dpal.privacy.accountants import PldAccountant
from dpal.privacy.campaign_accounting import campaign_epsilon
from dpal.randomness import Randomness, SeededRandomness
from dpal.training.loop import train_phase
from dpal.training.losses import cross_entropy
from dpal.training.sampling import BLANK
from dpal.training.settings import ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource

OTHERS = (1, 2, 3, 5, 63, 255, 511, 1023, 2047, 4000)
MOST_KINKS = 8
# A search looks at so many tunings at once, and then closer around the worst of them.
_LOOKS_PER_TUNING, _FEWEST_TUNINGS, _CLOSER, _LOOKS_PER_KINK = 400, 8, 1, 1_000
# Next to none; whatever it adds is below what rounding may hide, times the clip.
_NOISE, _HIDDEN = 1e-9, 1e-7
# Released gradients are rounded to float32: half a unit in the last place of each number.
_RELEASED_ROUNDING = 2.0**-24
# On a CPU a physical batch has an eighth of the rows that are expected.
_BATCHES = 8
_NO_SEED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestMove:
    """How far one record, or unit, moved the clipped sum, at least, in units of the clip."""

    move: float
    what: str
    tried: int


class RoundingAttack(Attack):
    """Constructions on which floating point once broke the bound, tuned until one record moves a sum furthest."""

    name: ClassVar[str] = "rounding"
    what: ClassVar[str] = (
        "Someone chooses all records so that one more of them changes how the others' gradients are rounded, or which "
        "of them count at all."
    )

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        claim = claim_of_plan(target.plan)
        worst = largest_move(target, effort)
        broken = worst.move > 1
        noun = "record" if target.rows_per_unit == 1 else "unit"
        return Finding(
            attack=self.name,
            what=self.what,
            claimed_epsilon=claim.epsilon,
            delta=claim.delta,
            epsilon_bound=epsilon_if_moved(target.plan, worst.move) if broken else 0.0,
            broken=broken,
            runs=worst.tried,
            seconds=time.monotonic() - start,
            note=f"one {noun} moves a sum by {worst.move:.6f} of the clip, the furthest that was found ({worst.what})",
        )


def epsilon_if_moved(plan: Plan, move: float) -> float:
    """What the plan costs a record that moves every sum so many times as far as it may."""
    phases = tuple(replace(phase, noise_multiplier=phase.noise_multiplier / move) for phase in plan.phases)
    return campaign_epsilon(
        history_of(replace(plan, phases=phases)),
        delta=plan.setting.target_delta,
        accounting="branch",
        accountant=PldAccountant(),
    )


def largest_move(target: Target, effort: Effort) -> LargestMove:
    """The worst construction that a search finds."""
    rng = randomness_of(effort, stream=8)
    tunings = max(_FEWEST_TUNINGS, effort.looks // _LOOKS_PER_TUNING)
    sizes = [others for others in OTHERS if 2 * others * target.rows_per_unit <= effort.looks]
    worst = LargestMove(move=0.0, what="nothing", tried=0)
    for others in sizes:
        worst = _further(worst, _tuned(others, tunings, target, rng))
    for others in range(1, 1 + min(MOST_KINKS, effort.looks // _LOOKS_PER_KINK)):
        made = kinked(others, **_form(target))
        worst = _further(worst, (_worst_of(each, target) for each in made))
    return worst


def _tuned(others: int, tunings: int, target: Target, rng: Randomness) -> Iterator[LargestMove]:
    """Tunings at random, and then others closer to the worst of them."""
    middles, width = {True: TUNINGS / 2, False: TUNINGS / 2}, float(TUNINGS)
    for _ in range(1 + _CLOSER):
        shares = (rng.integers(2**30, tunings) + 0.5) / 2**30 - 0.5
        variants = [(middle + width * float(share), clipped) for clipped, middle in middles.items() for share in shares]
        construction = tied(others, variants, **_form(target))
        found = moves(construction, target)
        yield LargestMove(move=float(found.max()), what=construction.what, tried=len(found))
        for half, clipped in enumerate(middles):
            middles[clipped] = variants[half * tunings + int(found[half * tunings :][:tunings].argmax())][0]
        width /= tunings


def _form(target: Target) -> dict[str, Any]:
    return {
        "max_grad_norm": target.max_grad_norm,
        "rows_per_unit": target.rows_per_unit,
        "device": target.torch_device,
    }


def _worst_of(construction: Construction, target: Target) -> LargestMove:
    found = moves(construction, target)
    return LargestMove(move=float(found.max()), what=construction.what, tried=len(found))


def _further(worst: LargestMove, others: Iterable[LargestMove]) -> LargestMove:
    for each in others:
        tried = worst.tried + each.tried
        worst = replace(each if each.move > worst.move else worst, tried=tried)
    return worst


def moves(construction: Construction, target: Target) -> NDArray[np.float64]:
    """How far the last record, or unit, moves the sum in each variant, at least: what rounding may add is taken off.

    Against a blank in its seat, as the promise has it; and against nobody there at all where that leaves the number of
    batches as it is. With another number all others get other seats: what that may do is an assumption
    (docs/maths/floating-point.md).
    """
    others = list(range(construction.others))
    there = _released(construction, [*others, len(others)], target)
    found = np.zeros(len(there))
    absences = [[*others, BLANK], others]
    for group in absences if construction.physical > len(others) else absences[:1]:
        absent = _released(construction, group, target)
        lengths = np.linalg.norm(there, axis=1) + np.linalg.norm(absent, axis=1)
        apart = np.linalg.norm(there - absent, axis=1) - _RELEASED_ROUNDING * lengths
        found = np.maximum(found, apart / target.max_grad_norm - _HIDDEN)
    return found


def _released(construction: Construction, group: list[int], target: Target) -> NDArray[np.float64]:
    """The sums that training releases, by variant: after each step the records are exchanged for the next ones."""
    inputs, targets = construction.inputs[0].clone(), construction.targets[0].clone()
    variants, rows, model = len(construction.inputs), construction.rows_per_unit, construction.model
    expected = float(_BATCHES * construction.physical)
    releases: list[NDArray[np.float64]] = []

    def exchange(step: int) -> None:
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        flat = torch.cat([gradient.flatten().double() for gradient in gradients])
        releases.append(flat.cpu().numpy() * expected)
        if step + 1 < variants:
            inputs.copy_(construction.inputs[step + 1])
            targets.copy_(construction.targets[step + 1])

    train_phase(
        model,
        Phase(steps=variants, noise_multiplier=_NOISE, expected_batch_size=expected, sampling_probabilities=(1.0,)),
        source=TensorSource(inputs, targets),
        groups=[group],
        loss=cross_entropy,
        # The weights stay as they are.
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        settings=TrainingSettings(max_grad_norm=target.max_grad_norm, average=None),
        compute=ComputeSettings(
            device=str(target.torch_device),
            engine=target.engine,
            precision=target.precision,
            max_physical_batch_size=construction.physical * rows,
        ),
        randomness=SeededRandomness(seed=_NO_SEED, nothing_is_private=True),
        after_step=exchange,
        description="attacking rounding",
        units=_table(construction) if rows > 1 else None,
    )
    return np.stack(releases)


def _table(construction: Construction) -> NDArray[np.int64]:
    """The units' records. The first units have empty seats, the last one has none."""
    count, rows = construction.others + 1, construction.rows_per_unit
    table = np.arange(count * rows).reshape(count, rows)
    filled = 1 + np.arange(count) % rows
    filled[-1] = rows
    return np.where(np.arange(rows) < filled[:, None], table, BLANK)
