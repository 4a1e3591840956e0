"""Several real processes that train together, and what each of them has in the end."""

import os
import signal
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from small_units import ragged
from torch import nn
from warm_processes import CONTEXT

from dpal.planning.plan import Phase
from dpal.randomness import SealedRandomness
from dpal.training import loop
from dpal.training.learner import Learner
from dpal.training.process_group import ProcessGroup
from dpal.training.processes import OneProcess, Processes
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings

COUNT = 90
SIZES = [3, 1, 2, 4] * 9


def together(count: int, action: Callable[..., Any], *words: Any) -> list[Any]:
    """What an action of this module returns in each of so many processes; an exception as its type and text."""
    with tempfile.TemporaryDirectory() as folder:
        pipes = [CONTEXT.Pipe(duplex=False) for _ in range(count)]
        processes = [
            CONTEXT.Process(target=_one, args=(writer, rank, count, f"{folder}/meeting-point", action, words))
            for rank, (_, writer) in enumerate(pipes)
        ]
        for process in processes:
            process.start()
        for _, writer in pipes:
            writer.close()
        results = [_received(reader) for reader, _ in pipes]
        for process in processes:
            process.join(60)
    return results


def _received(reader: Connection) -> Any:
    try:
        return reader.recv()
    except EOFError:
        return "died"


def _one(writer: Connection, rank: int, count: int, meeting_point: str, action: Callable[..., Any], words: Any) -> None:
    torch.set_num_threads(1)
    group = None
    try:
        group = ProcessGroup(rank=rank, count=count, meeting_point=meeting_point)
        writer.send(action(group, *words))
    except Exception as error:
        writer.send(f"{type(error).__name__}: {error}")
    if group is not None:
        group.close()


def interfaces(group: ProcessGroup) -> dict[str, str]:
    """What gloo and NCCL are told to use."""
    del group
    return {name: value for name, value in os.environ.items() if name.startswith(("GLOO_SOCKET_", "NCCL_"))}


class Images:
    bytes_each, form = 256, {"": np.zeros((1, 8, 8), dtype=np.float32)}

    def __init__(self) -> None:
        self.values = np.random.default_rng(0).normal(size=(COUNT, 1, 8, 8)).astype(np.float32)
        # Their gradients are not finite: each contributes nothing and is counted, wherever it is computed.
        self.values[4:6] = np.nan

    def __len__(self) -> int:
        return COUNT

    def read(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.values[positions]


def learner() -> Learner:
    torch.manual_seed(5)
    layers = (nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(144, 3))
    settings = TrainingSettings(learning_rate=0.01, augmentation=Augmentation(copies=2, flip=True, crop=1))
    compute = ComputeSettings(device="cpu", engine="fused")
    return Learner(nn.Sequential(*layers), Images(), multi_label=False, settings=settings, compute=compute)


def train(
    processes: Processes | None = None, bug: str = "", in_units: bool = False, *, rate: float = 0.8
) -> tuple[bytes, int]:
    """The weights after a phase with dropout and augmented copies, and how many gradients were broken."""
    processes = processes or OneProcess()
    own = learner()
    is_odd = processes.rank == 1
    members = len(SIZES) if in_units else COUNT
    plan = Phase(
        steps=4,
        noise_multiplier=1.0 if bug != "other noise multiplier" or is_odd else 1.1,
        expected_batch_size=rate * members,
        sampling_probabilities=(rate, rate / 2),
    )
    key = bytes([1 + (bug == "other key" and is_odd)]) * 32
    with patch.object(*PLANTED[bug]) if bug in PLANTED else patch.object(loop, "train_phase", loop.train_phase):
        result = own.train(
            plan,
            [np.arange(0, members, 2), np.arange(1, members, 2)],
            np.arange(COUNT) % 3,
            randomness=SealedRandomness(key),
            description="phase",
            after_step=lambda step: None,
            units=ragged(SIZES) if in_units else None,
            processes=processes,
        )
    assert result.processes == processes.count
    return own.weights(), result.not_finite


def _share_without_the_last(self: Processes, batches: list[Any]) -> list[Any]:
    return batches[:-1][self.rank :: self.count]


def _the_same_share(self: Processes, batches: list[Any]) -> list[Any]:
    return batches


def _noise_of_every_process(engine: Any, total: Any, phase: Any, max_grad_norm: float, randomness: Any) -> None:
    _TRUE_NOISE(engine, total, phase, max_grad_norm * torch.distributed.get_world_size() ** 0.5, randomness)


_TRUE_NOISE = loop.set_noisy_gradients
PLANTED: dict[str, tuple[Any, str, Any]] = {
    "a batch is lost": (Processes, "share", _share_without_the_last),
    "a batch is added twice": (Processes, "share", _the_same_share),
    "noise of each process": (loop, "set_noisy_gradients", _noise_of_every_process),
}


def conversation(group: ProcessGroup) -> list[object]:
    """Messages of several lengths, from rank 0 to all."""
    messages = [b"phase", bytes(range(256)) * 1000, b""]
    if group.rank == 0:
        for message in messages:
            group.send(message)
        return messages
    return [group.receive() for _ in messages]


def verdicts(group: ProcessGroup) -> list[bool]:
    """What all agree on where none, one and all say yes."""
    return [group.all_agree(group.rank >= least) for least in (group.count, 1, 0)]


def one_dies(group: ProcessGroup) -> str:
    """The last one is killed while the others wait for it, or still while they meet it."""
    if group.rank == group.count - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    group.all_agree(True)
    return "nothing was noticed"
