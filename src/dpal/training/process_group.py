"""Several processes of one machine that train together: torch.distributed with gloo, and NCCL where each has a GPU.

This is the only file that imports torch.distributed. What goes between the processes has no noise yet, so it must not
leave the machine, and nothing of it is written. Messages are numbers and JSON, never pickle.
"""

import hashlib
import os
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dpal.errors import DpalError, ProcessLost
from dpal.training.engines.clipping import Gradients
from dpal.training.processes import Processes

# Others wait while the first one scores the pool, or waits for labels. A process that dies is noticed at once.
_PATIENCE = timedelta(days=365)
_LOOK_SECONDS = 0.02
_DIGEST_BYTES = 32
_LOOPBACKS = {"lo", "lo0"}


class ProcessGroup(Processes):
    """The processes that `torch.distributed` has brought together. Rank 0 says what is to be done."""

    def __init__(self, *, rank: int, count: int, meeting_point: str) -> None:
        """Wait until all processes are there. `meeting_point` is a file; where it is empty, torchrun says it."""
        self.rank, self.count = rank, count
        _stay_on_this_machine()
        if torch.cuda.is_available():
            torch.cuda.set_device(rank % torch.cuda.device_count())
        with _lost_ones():
            store = _met(rank, count, meeting_point) if meeting_point else None
            dist.init_process_group("gloo", store=store, rank=rank, world_size=count, timeout=_PATIENCE)
        self._sums: dist.ProcessGroup | None = None
        self._chosen = False
        self._staged = torch.empty(0, dtype=torch.float64, device="cpu")

    def send(self, message: bytes) -> None:
        """Tell all other processes. Only rank 0 may."""
        with _lost_ones():
            dist.broadcast(torch.tensor([len(message)], dtype=torch.int64, device="cpu"), 0)
            if message:
                dist.broadcast(torch.frombuffer(bytearray(message), dtype=torch.uint8), 0)

    def receive(self) -> bytes:
        """The next message of rank 0; empty if there is nothing more to do."""
        length = torch.zeros(1, dtype=torch.int64, device="cpu")
        with _lost_ones():
            dist.broadcast(length, 0)
            content = torch.empty(int(length), dtype=torch.uint8, device="cpu")
            if len(content):
                dist.broadcast(content, 0)
        return content.numpy().tobytes()

    def summed(self, total: Gradients, not_finite: Tensor) -> tuple[Gradients, Tensor]:
        """In one go. Each term is on a grid on which float64 adds exactly, so the order does not matter."""
        flat = torch.cat([*(part.flatten() for part in total.values()), not_finite.double().reshape(1)])
        self._all_reduce(flat)
        parts = torch.split(flat[:-1], [part.numel() for part in total.values()])
        shaped = {name: own.reshape(part.shape) for (name, part), own in zip(total.items(), parts, strict=True)}
        return shaped, flat[-1].to(not_finite.dtype)

    def _all_reduce(self, flat: Tensor) -> None:
        with _lost_ones():
            if not flat.is_cuda:
                dist.all_reduce(flat)
                return
            if not self._chosen:
                self._sums, self._chosen = self._nccl(flat.device), True
            if self._sums is not None:
                dist.all_reduce(flat, group=self._sums)
                return
            # NCCL wants a GPU for each process. Pinned memory is copied several times as fast.
            if len(self._staged) != len(flat):
                self._staged = torch.empty(len(flat), dtype=flat.dtype, device="cpu", pin_memory=True)
            self._staged.copy_(flat)
            dist.all_reduce(self._staged)
            flat.copy_(self._staged)

    def _nccl(self, device: torch.device) -> dist.ProcessGroup | None:
        """A group for sums on GPUs, if every process has one of its own."""
        own = torch.zeros(self.count, dtype=torch.int64, device="cpu")
        own[self.rank] = device.index
        dist.all_reduce(own)
        if not dist.is_nccl_available() or len(own.unique()) < self.count:
            return None
        group = dist.new_group(backend="nccl", timeout=_PATIENCE)
        return group if isinstance(group, dist.ProcessGroup) else None

    def all_agree(self, holds: bool) -> bool:
        verdict = torch.tensor([int(holds)], dtype=torch.int64, device="cpu")
        with _lost_ones():
            dist.all_reduce(verdict, op=dist.ReduceOp.MIN)
        return bool(verdict)

    def require_same(self, what: str, value: str) -> None:
        own = torch.frombuffer(bytearray(hashlib.sha256(value.encode()).digest()), dtype=torch.uint8)
        every = [torch.empty(_DIGEST_BYTES, dtype=torch.uint8, device="cpu") for _ in range(self.count)]
        with _lost_ones():
            dist.all_gather(every, own)
        if any(not torch.equal(other, every[0]) for other in every):
            raise DpalError(
                f"The {self.count} processes differ in {what}, so their work does not belong together. Nothing of it "
                "was kept or shown. Give all of them the same GPUs, number of threads and environment, or use one "
                "process."
            )

    def close(self) -> None:
        """Leave the group."""
        if dist.is_initialized():
            dist.destroy_process_group()


class LateGroup(Processes):
    """A group whose other processes are started with the first message: until then nothing needs them."""

    def __init__(self, count: int, meeting_point: str, start: Callable[[str], None]) -> None:
        self.count = count
        self._meeting_point, self._start = meeting_point, start
        self._group: ProcessGroup | None = None

    @property
    def _all(self) -> ProcessGroup:
        if self._group is None:
            self._start(self._meeting_point)
            self._group = ProcessGroup(rank=0, count=self.count, meeting_point=self._meeting_point)
        return self._group

    def send(self, message: bytes) -> None:
        self._all.send(message)

    def summed(self, total: Gradients, not_finite: Tensor) -> tuple[Gradients, Tensor]:
        return self._all.summed(total, not_finite)

    def all_agree(self, holds: bool) -> bool:
        return self._all.all_agree(holds)

    def require_same(self, what: str, value: str) -> None:
        self._all.require_same(what, value)

    def close(self) -> None:
        """Leave the group, if there is one."""
        if self._group is not None:
            self._group.close()


def _stay_on_this_machine() -> None:
    """Without this, gloo and NCCL take a network interface that others may reach, and NCCL perhaps InfiniBand."""
    for name in _LOOPBACKS & {name for _, name in socket.if_nameindex()}:
        # With "=" NCCL takes exactly this one, and not every interface that begins so.
        os.environ |= {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": f"={name}", "NCCL_IB_DISABLE": "1"}


def _met(rank: int, count: int, file: str) -> Any:
    """Wait for the others here and not in torch, where nothing can interrupt it."""
    store = dist.FileStore(file, count)  # pyright: ignore[reportPrivateImportUsage] (it is in torch's documentation)
    store.set(f"here/{rank}", "")
    while not store.check([f"here/{other}" for other in range(count)]):
        time.sleep(_LOOK_SECONDS)
    return store


@contextmanager
def _lost_ones() -> Generator[None]:
    """Translate torch's errors about connections."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost("Another process of this run has ended, so this one ends too.") from error
