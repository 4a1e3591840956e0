"""One training phase of a plan, from top to bottom. It knows steps, rates and noise, and nothing of ε."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.errors import DpalError, InvalidArgument, TrainingDiverged
from dpal.planning.plan import Phase
from dpal.randomness import Randomness
from dpal.training.augmentation import augmented
from dpal.training.averaging import WeightAverage
from dpal.training.batch_randomness import batch_generators, batch_key
from dpal.training.batches import Batch, LossFunction
from dpal.training.batches import rows as rows_of
from dpal.training.engines.clipping import Gradients, on_grid, sum_grid
from dpal.training.engines.engine import ClippingEngine
from dpal.training.engines.engine_checks import losses_of, uneven_weights
from dpal.training.engines.engine_choice import engine_for
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.synthetic_records import synthetic_like
from dpal.training.noise import gaussian_noise
from dpal.training.optimizers import optimizer_for
from dpal.training.phase_snapshot import PhaseState, Snapshots
from dpal.training.processes import OneProcess, Processes
from dpal.training.progress import StepProgress, doing
from dpal.training.sampling import BLANK, Positions, most_drawn, physical_rows, poisson_draw, seated
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings
from dpal.training.sources import Source
from dpal.training.units import Units

# Occasional overflows are normal; with this share of a phase's gradients something is wrong.
_MOST_NOT_FINITE = 0.1
_ENOUGH_TO_JUDGE = 100
# Reading these numbers makes the host wait for the device, so it is not done at every step.
_STEPS_BETWEEN_CHECKS = 10
_SYNTHETIC_RECORDS = 4
_FEWEST_SYNTHETIC_UNITS = 2
_SYNTHETIC_SEED = 20_261_119

_log = logging.getLogger("dpal.training")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseResult:
    """What happened. The number of broken gradients depends on private data: for the operator, not for release."""

    steps: int
    engine: str
    # How many processes trained it.
    processes: int = 1
    not_finite: int = field(repr=False)


def train_phase(
    model: nn.Module,
    phase: Phase,
    *,
    source: Source,
    groups: Sequence[Sequence[int] | NDArray[np.integer]],
    loss: LossFunction,
    settings: TrainingSettings,
    compute: ComputeSettings | None = None,
    randomness: Randomness,
    optimizer: torch.optim.Optimizer | None = None,
    average: WeightAverage | None = None,
    after_step: Callable[[int], None] | None = None,
    description: str = "training",
    later_records: float = 0.0,
    units: NDArray[np.int64] | None = None,
    processes: Processes | None = None,
    pool_size: int | None = None,
    snapshots: Snapshots | None = None,
) -> PhaseResult:
    """Train for the phase's steps. `groups` holds the positions of each group's records, oldest first.

    With `units`, a table (units, rows) of the records that each unit trains on and `BLANK` in empty seats, `groups`
    holds rows of the table. A unit is drawn as a whole, and the gradients of its records are averaged before they are
    clipped; the plan's batch size counts units. The number of columns is public; how many seats a unit fills is not.

    Training happens on the model's device. The optimizer is the one of the settings unless one is given. A record that
    belongs to a group but teaches nothing (nobody could label it) has the position `BLANK`: it is drawn and takes its
    seat like any other, so that nothing but its own gradient depends on what it holds. `later_records` are the records
    (or units) that later phases are expected to draw, for an estimate of the time. `pool_size` is the public number of
    records, where the source holds only some of them.

    Several `processes` that are given the same, with randomness from the same key, train the same model together.

    With `snapshots`, a phase that was interrupted goes on from the newest one, with the bits it would have had.
    """
    processes = processes or OneProcess()
    members = Units.of_single_records(len(source)) if units is None else Units.of_table(units, len(source))
    groups = _checked_groups(groups, None if units is None else members)
    copies = settings.augmentation.copies
    compute = compute or ComputeSettings()
    optimizer = optimizer or optimizer_for(settings, model, steps=phase.steps)
    device = next(model.parameters()).device
    key = batch_key(randomness)
    seats = np.random.default_rng(int.from_bytes(randomness.bytes(16), "little"))
    # Before the engine is chosen, too: compiled code depends on the mode of each layer.
    model.train()
    # Nothing about how a phase runs may depend on the records themselves: synthetic ones choose the engine and show
    # whether training has diverged.
    fixed = torch.Generator(device=device).manual_seed(_SYNTHETIC_SEED)
    sample = _augmented(_synthetic(source, groups, members), settings.augmentation, fixed)
    with doing(f"{description}: checking the engine on synthetic records"):
        engine = _engine(model, loss, sample, settings, compute, members.rows)
    rows = physical_rows(
        phase.expected_batch_size,
        compute.max_physical_batch_size,
        one_at_a_time=device.type != "cpu",
        rows_per_unit=members.rows,
        processes=processes.count,
    )
    engine.physical_records = rows
    engine.step_records = most_drawn(phase.expected_batch_size, pool_size or len(members))
    grid = sum_grid(settings.max_grad_norm, max(engine.step_records, rows))
    processes.require_same("how they compute", _how(engine, phase, settings, compute, device))
    keeps_bound = device.type != "cuda" or not isinstance(engine, FusedEngine) or _keeps_bound(engine, sample, members)
    if not processes.all_agree(keeps_bound) and isinstance(engine, FusedEngine):
        # A compiler may change where numbers are rounded. Better slow than beyond the bound.
        _log.warning(
            "Compiled code lets a contribution exceed its bound here. Training is not compiled, so it is slower."
        )
        engine.compiled = False
    model.train()
    state = PhaseState(
        model=model,
        optimizer=optimizer,
        average=average,
        randomness=randomness,
        seats=seats,
        not_finite=torch.zeros((), dtype=torch.int64, device=device),
    )
    snapshots, how = snapshots or Snapshots(), _bits_depend_on(engine, compute, device)
    if (newest := snapshots.newest()) is not None:
        snapshots.resumed_at(state.done if state.restore(newest, how) else None, phase.steps)
        processes.require_same("where they go on from", str(state.done))
        del newest
    with (
        batch_generators(device, key=key) as started,
        StepProgress(
            description,
            phase.steps,
            batch_size=phase.expected_batch_size,
            later_records=later_records,
            begins_after=state.done,
        ) as progress,
    ):
        for step in range(state.done, phase.steps):
            draw = poisson_draw(groups, phase.sampling_probabilities, randomness=randomness)
            batches = enumerate(seated(draw, rows, seats))
            share = processes.share([(number, places) for number, places in batches if (places != BLANK).any()])
            total, broken = _zeros(engine), torch.zeros((), dtype=torch.int64, device=device)
            positions = (members.positions(places[places != BLANK]) for _, places in share)
            for (number, places), read in zip(share, source.stream(positions), strict=True):
                generator = started(step, number)
                batch, present, weights = _in_their_seats(read, places, members, copies)
                inputs, targets = _augmented(batch, settings.augmentation, generator)
                clipped = engine.clipped_sum(inputs, targets, present, weights)
                _add(total, clipped.gradients, grid)
                broken = broken + clipped.not_finite.to(device)
            total, broken = processes.summed(total, broken)
            state.seen, state.not_finite = state.seen + int((draw != BLANK).sum()), state.not_finite + broken
            if step % _STEPS_BETWEEN_CHECKS == 0 and not state.warned:
                state.warned = _warned_of_broken(state.seen, int(state.not_finite))
            set_noisy_gradients(engine, total, phase, settings.max_grad_norm, randomness)
            optimizer.step()
            if average is not None:
                average.update()
            progress.step()
            if (step + 1) % _STEPS_BETWEEN_CHECKS == 0 or step + 1 == phase.steps:
                _stop_if_diverged(model, loss, sample, step)
            state.done = step + 1
            if state.done < phase.steps:
                snapshots.offer(lambda: state.to_bytes(how))
            if after_step is not None:
                after_step(step)
    not_finite = int(state.not_finite)
    if not state.warned:
        _warned_of_broken(state.seen, not_finite, at_the_end=True)
    return PhaseResult(steps=phase.steps, engine=engine.name, processes=processes.count, not_finite=not_finite)


def _checked_groups(groups: Sequence[Sequence[int] | NDArray[np.integer]], units: Units | None) -> list[Positions]:
    """The groups as arrays. Whatever occurs twice would be summed twice, and move the weights twice as far."""
    noun = "record" if units is None else "unit"
    arrays = [np.asarray(group) for group in groups]
    if any(array.ndim != 1 or (len(array) and array.dtype.kind not in "iu") for array in arrays):
        raise InvalidArgument("groups", [str(array.dtype) for array in arrays], "lists of whole positions")
    members = np.concatenate([array.astype(np.int64) for array in arrays]) if arrays else np.empty(0, dtype=np.int64)
    labelled = members[members != BLANK]
    if not len(labelled):
        raise DpalError("There is no labelled record to train on.")
    if labelled.min() < 0:
        raise InvalidArgument("a position in groups", int(labelled.min()), "at least 0")
    if len(np.unique(labelled)) < len(labelled):
        raise DpalError(f"A {noun} occurs twice in the groups. Each {noun} may be in one group only, once.")
    checked = [array.astype(np.int64) for array in arrays]
    if units is None:
        return checked
    if labelled.max() >= len(units):
        raise InvalidArgument("a unit in groups", int(labelled.max()), f"below {len(units):,}, the rows of the table")
    checked = [units.that_teach(group) for group in checked]
    if all((group == BLANK).all() for group in checked):
        raise DpalError("There is no labelled record to train on.")
    return checked


def _in_their_seats(
    read: tuple[Batch, Tensor], places: Positions, members: Units, copies: int
) -> tuple[tuple[Batch, Tensor], Tensor, Tensor | None]:
    """Every unit in its seat, copies of the first one in the empty seats; which seats count, and the rows' weights."""
    inputs, targets = read
    taken = places != BLANK
    order = np.where(taken, np.cumsum(taken) - 1, 0)
    device = targets.device
    index = torch.from_numpy((order[:, None] * members.rows + np.arange(members.rows)).reshape(-1)).to(device)
    weights = members.row_weights(places[taken][order], copies)
    return (
        (rows_of(inputs, index), targets[index]),
        torch.from_numpy(taken).to(device),
        None if weights is None else torch.from_numpy(weights).to(device),
    )


def _synthetic(source: Source, groups: list[Positions], members: Units) -> tuple[Batch, Tensor]:
    """A few synthetic records, or units, shaped like real ones."""
    drawn = np.concatenate(groups)
    # Few units are enough where they have many rows: the check computes every unit several times.
    count = max(_FEWEST_SYNTHETIC_UNITS, -(-2 * _SYNTHETIC_RECORDS // members.rows))
    count = min(_SYNTHETIC_RECORDS, count)
    return synthetic_like(source.batch(members.positions(np.resize(drawn[drawn != BLANK], count))))


def _keeps_bound(engine: FusedEngine, sample: tuple[Batch, Tensor], members: Units) -> bool:
    """Whether compiled code does, with weights as in training: other arguments would be other code."""
    inputs, targets = sample
    weights = None
    if members.weights is not None:
        weights = uneven_weights(len(targets) // engine.copies, engine.copies, targets.device)
    return engine.keeps_bound(inputs, targets, weights)


def _engine(
    model: nn.Module,
    loss: LossFunction,
    sample: tuple[Batch, Tensor],
    settings: TrainingSettings,
    compute: ComputeSettings,
    rows_per_unit: int,
) -> ClippingEngine:
    return engine_for(
        model,
        loss,
        max_grad_norm=settings.max_grad_norm,
        sample=sample,
        name=compute.engine,
        copies=settings.augmentation.copies,
        rows_per_unit=rows_per_unit,
        precision=compute.precision,
    )


def _how(
    engine: ClippingEngine,
    phase: Phase,
    settings: TrainingSettings,
    compute: ComputeSettings,
    device: torch.device,
) -> str:
    """What must be the same in all processes, or their weights would part; all of it is public."""
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else torch.get_num_threads()
    sizes = (engine.name, engine.physical_records, engine.step_records)
    return f"{torch.__version__} {device.type} {where} {sizes} {phase} {settings} {compute.precision}"


def _bits_depend_on(engine: ClippingEngine, compute: ComputeSettings, device: torch.device) -> str:
    """What a phase may not change in its middle. Numbers of threads and processes may change: they only round."""
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    compiled = engine.compiled if isinstance(engine, FusedEngine) else None
    return f"torch {torch.__version__}, numpy {np.__version__}, {where}, {engine.name}, {compiled}, {compute.precision}"


def _augmented(
    batch: tuple[Batch, Tensor], augmentation: Augmentation, generator: torch.Generator
) -> tuple[Batch, Tensor]:
    inputs, targets = batch
    if augmentation == Augmentation():
        return batch
    if not isinstance(inputs, Tensor) or inputs.ndim != 4:
        raise DpalError("Augmentation is for images (records, channels, height, width) only. Leave it out here.")
    return augmented(inputs, augmentation, generator), targets.repeat_interleave(augmentation.copies, dim=0)


def _zeros(engine: ClippingEngine) -> Gradients:
    return {
        # Float32 would round one record's contribution, down or up.
        name: torch.zeros_like(parameter, dtype=torch.float64, requires_grad=False)
        for name, parameter in engine.trainable().items()
    }


def _add(total: Gradients, clipped: Gradients, grid: float) -> None:
    """Exactly: the sum has the same bits in any order, so also in any number of processes."""
    for name, gradient in clipped.items():
        total[name] += on_grid(gradient, grid)


def set_noisy_gradients(
    engine: ClippingEngine, total: Gradients, phase: Phase, max_grad_norm: float, randomness: Randomness
) -> None:
    """(sum + noise) / planned batch size. The number of records drawn is private and is never divided by."""
    trainable = engine.trainable()
    flat = torch.cat([total[name].flatten() for name in trainable]).double()
    noise = gaussian_noise(len(flat), flat.device, randomness=randomness)
    noisy = (flat + phase.noise_multiplier * max_grad_norm * noise) / phase.expected_batch_size
    gradients = torch.split(noisy.float(), [parameter.numel() for parameter in trainable.values()])
    for parameter, gradient in zip(trainable.values(), gradients, strict=True):
        parameter.grad = gradient.reshape(parameter.shape).to(parameter.dtype)


def _warned_of_broken(seen: int, not_finite: int, *, at_the_end: bool = False) -> bool:
    """Warn the operator. The phase must go on: stopping it would reveal something about the records."""
    enough = at_the_end or seen >= _ENOUGH_TO_JUDGE
    if not (enough and seen and not_finite > _MOST_NOT_FINITE * seen):
        return False
    _log.warning(
        "More than %.0f%% of the gradients are not finite. Each contributes zero, so the privacy promise holds, but "
        "the model learns little. Look for inputs that are huge or not finite, or use the precision float32. This "
        "message is about private records: do not publish it.",
        100 * _MOST_NOT_FINITE,
    )
    return True


def _stop_if_diverged(model: nn.Module, loss: LossFunction, sample: tuple[Batch, Tensor], step: int) -> None:
    """Decided by synthetic records and by the weights, which noise protects already."""
    losses, _ = losses_of(model, loss, *sample)
    if not torch.isfinite(losses).all():
        raise TrainingDiverged(
            f"Training has diverged by step {step + 1}: the loss is NaN or infinite for every record. Lower the "
            "learning rate or use the precision float32. In a campaign the phase stays charged and diverges again: "
            "give it up and go on with dpal give-up CAMPAIGN --set training.learning_rate=... Models of earlier phases "
            "are as they were."
        )
