"""What training in several processes costs over one, at equal batch, and what it gains with a core for each.

Overhead: the same steps with the same physical batches, in one process, and in two that share what it had (one core, or
one GPU). Anything more is what the distributed path adds: sums that are sent, and the noise and the update, which every
process computes. On a CPU the CPU time of all processes together is compared, so that whatever else the machine does
disturbs little; on a GPU the time on the clock. Phases take turns. --device cuda needs a GPU.
"""

import multiprocessing
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from _report import Report, parser
from torch import Tensor, nn

from dpal.models import ResNet9, SmallCNN
from dpal.planning.plan import Phase
from dpal.randomness import SealedRandomness
from dpal.training.loop import train_phase
from dpal.training.losses import cross_entropy
from dpal.training.process_group import ProcessGroup
from dpal.training.processes import OneProcess, Processes
from dpal.training.progress import silence
from dpal.training.settings import ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource

OVERHEAD = 0.05
PROCESSES = 2
CLASSES = 10


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    model: str
    side: int
    channels: int
    records: int
    expected: float
    physical: int
    steps: int
    precision: str = "float32"


ON_CPU = (
    Workload(
        name="a small CNN, 28 × 28",
        model="small",
        side=28,
        channels=1,
        records=4_000,
        expected=256.0,
        physical=32,
        steps=6,
    ),
    Workload(
        name="ResNet-9, 32 × 32", model="resnet9", side=32, channels=3, records=400, expected=64.0, physical=8, steps=2
    ),
)
ON_GPU = (
    Workload(
        name="ResNet-9, 32 × 32, batch 2,048",
        model="resnet9",
        side=32,
        channels=3,
        records=25_000,
        expected=2048.0,
        physical=1100,
        steps=60,
        precision="bf16",
    ),
    Workload(
        name="ResNet-9, 128 × 128, batch 256",
        model="resnet9",
        side=128,
        channels=3,
        records=2_000,
        expected=256.0,
        physical=156,
        steps=60,
        precision="bf16",
    ),
)
MODELS: dict[str, Callable[[int], nn.Module]] = {
    "small": lambda channels: SmallCNN(channels=channels, classes=CLASSES),
    "resnet9": lambda channels: ResNet9(channels=channels, classes=CLASSES),
}


def steps_of(workload: Workload, device: str, processes: Processes, turn: int) -> tuple[list[float], float, bytes]:
    """Seconds on the clock of each step but the first, CPU seconds of a step, and a sum of the weights."""
    torch.manual_seed(0)
    model = MODELS[workload.model](workload.channels).to(device)
    shape = (workload.records, workload.channels, workload.side, workload.side)
    source = TensorSource(
        torch.randn(shape, device=device), torch.randint(0, CLASSES, (workload.records,), device=device)
    )
    ends: list[tuple[float, float]] = []

    def after_step(_: int) -> None:
        if device != "cpu":
            torch.cuda.synchronize()
        ends.append((time.perf_counter(), time.process_time()))

    train_phase(
        model,
        Phase(
            steps=workload.steps + 1,
            noise_multiplier=1.0,
            expected_batch_size=workload.expected,
            sampling_probabilities=(workload.expected / workload.records,),
        ),
        source=source,
        groups=[np.arange(workload.records)],
        loss=cross_entropy,
        settings=TrainingSettings(),
        compute=ComputeSettings(device=device, precision=workload.precision, max_physical_batch_size=workload.physical),
        randomness=SealedRandomness(bytes([turn + 1]) * 32),
        after_step=after_step,
        processes=processes,
    )
    clock, cpu = np.diff(np.asarray(ends), axis=0).T
    weights: list[Tensor] = [parameter.detach().double().flatten().cpu() for parameter in model.parameters()]
    return clock.tolist(), float(cpu.mean()), torch.cat(weights).numpy().tobytes()


def serve(pipe: Connection, rank: int, count: int, meeting_point: str) -> None:
    """One of several processes, which stays for all measurements."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    silence()
    group = ProcessGroup(rank=rank, count=count, meeting_point=meeting_point)
    while (wanted := pipe.recv()) is not None:
        workload, device, turn, cores, alone = wanted
        if cores is not None:
            os.sched_setaffinity(0, cores)
        pipe.send(steps_of(workload, device, OneProcess() if alone else group, turn))
    group.close()


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Over all processes: seconds on the clock of a step, and CPU seconds of a step."""

    clock: list[float]
    cpu: float


class Team:
    """Processes that measure on request, alone or together."""

    def __init__(self, count: int, folder: str) -> None:
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(count)]
        self.pipes = [own for own, _ in pairs]
        self.members = [
            context.Process(target=serve, args=(other, rank, count, f"{folder}/meeting-point"), daemon=True)
            for rank, (_, other) in enumerate(pairs)
        ]
        for member in self.members:
            member.start()

    def measure(
        self, workload: Workload, device: str, turn: int, *, count: int, cores: list[set[int]] | None
    ) -> tuple[Measured, bytes]:
        for rank, pipe in enumerate(self.pipes[:count]):
            pipe.send((workload, device, turn, None if cores is None else cores[rank], count == 1))
        results: list[Any] = [pipe.recv() for pipe in self.pipes[:count]]
        assert all(weights == results[0][2] for _, _, weights in results)
        return Measured(clock=results[0][0], cpu=sum(cpu for _, cpu, _ in results)), results[0][2]

    def end(self) -> None:
        for pipe in self.pipes:
            pipe.send(None)
        for member in self.members:
            member.join(30)


def measure(report: Report, team: Team, workload: Workload, device: str, turns: int) -> None:
    on_cpu = device == "cpu"
    available = sorted(os.sched_getaffinity(0))
    one = {available[0]}
    setups: dict[str, tuple[int, list[set[int]] | None]] = {
        "one process": (1, [one] if on_cpu else None),
        "two processes on the same core" if on_cpu else "two processes on the same GPU": (
            PROCESSES,
            [one] * PROCESSES if on_cpu else None,
        ),
    }
    if on_cpu and len(available) >= PROCESSES:
        setups["two processes on two cores"] = PROCESSES, [{core} for core in available[:PROCESSES]]
    found: dict[str, list[Measured]] = {name: [] for name in setups}
    same = True
    for turn in range(turns):
        weights: set[bytes] = set()
        for name in list(setups) if turn % 2 == 0 else list(setups)[::-1]:
            count, cores = setups[name]
            measured, final = team.measure(workload, device, turn, count=count, cores=cores)
            found[name].append(measured)
            weights.add(final)
        same = same and len(weights) == 1
    alone, shared, *_ = found
    clocks = {name: statistics.median(step for turn in each for step in turn.clock) for name, each in found.items()}
    cpus = {name: statistics.median(turn.cpu for turn in each) for name, each in found.items()}
    for name in setups:
        row: dict[str, object] = {"what": f"{workload.name}: {name}", "milliseconds_a_step": 1e3 * clocks[name]}
        if on_cpu:
            row |= {"CPU_milliseconds_a_step": 1e3 * cpus[name]}
        report.row(**row, ratio=clocks[name] / clocks[alone])
    pairs = zip(found[shared], found[alone], strict=True)
    overhead = (
        statistics.median(two.cpu / single.cpu for two, single in pairs)
        if on_cpu
        else statistics.median(np.median(two.clock) / np.median(single.clock) for two, single in pairs)
    ) - 1
    report.claim(
        f"{workload.name}: overhead of two processes over one, " + ("CPU time, same core" if on_cpu else "same GPU"),
        overhead,
        f"below {OVERHEAD:g}",
        overhead < OVERHEAD,
    )
    if on_cpu:
        report.claim(f"{workload.name}: weights are the same bit for bit", float(same), "1", same)


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to train; cpu unless given")
    options = command.parse_args()
    report = Report(name="processes", packages=("torch",))
    with tempfile.TemporaryDirectory() as folder:
        team = Team(PROCESSES, folder)
        workloads = ON_CPU if options.device == "cpu" else ON_GPU
        for workload in workloads[: 1 if options.quick else None]:
            measure(report, team, workload, options.device, turns=2 if options.quick else 6)
        team.end()
    accelerator = torch.cuda.get_device_name() if options.device == "cuda" else None
    report.finish(options.json, accelerator=accelerator)


if __name__ == "__main__":
    main()
