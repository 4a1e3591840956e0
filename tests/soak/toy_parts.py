"""What the campaigns of the soak name by import path: a linear model, and a label source that misbehaves when told to.

What the source does comes from $DPAL_SOAK_SOURCE: WORD:N, where N answers are given before it happens.
"""

import os
import signal
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import torch

from dpal.data import Pool
from dpal.labels.oracles import SimulatedOracle

VARIABLE = "DPAL_SOAK_SOURCE"
HANGS_SECONDS = 30.0
# What can go wrong after some answers.
MISHAPS = ("raises", "hangs-up", "dies", "nonsense", "stranger", "no-pairs", "says-nothing", "out-of-memory", "stops")


def linear() -> torch.nn.Module:
    """So small that a whole phase takes milliseconds."""
    torch.manual_seed(1)
    return torch.nn.Linear(4, 2)


class LabelSource:
    """The pool's own labels, until something goes wrong."""

    name: ClassVar[str] = "toy_parts:LabelSource"

    def ask(self, ids: Sequence[str], pool: Pool) -> Iterable[tuple[str, Any]] | None:
        mishap, _, number = os.environ.get(VARIABLE, "").partition(":")
        if mishap == "says-nothing":
            return None
        if mishap == "no-pairs":
            return [*ids]  # type: ignore[list-item]
        return self._answers(ids, pool, mishap, int(number or 0))

    def _answers(self, ids: Sequence[str], pool: Pool, mishap: str, number: int) -> Iterable[tuple[str, Any]]:
        for place, pair in enumerate((SimulatedOracle().ask(ids, pool) or {}).items()):
            if mishap and place == number:
                yield from _happens(mishap, pair[0])
            yield pair


def _happens(mishap: str, record_id: str) -> Iterable[tuple[str, Any]]:
    match mishap:
        case "raises":
            raise RuntimeError("the label source is broken\nin two lines")
        case "hangs-up":
            raise ConnectionResetError("the label source hung up")
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hangs":
            time.sleep(HANGS_SECONDS)
        case "out-of-memory":
            raise MemoryError
        case "stops":
            raise KeyboardInterrupt
        case "nonsense":
            yield record_id, "no class of anybody"
        case "stranger":
            yield "a record of nobody", "yes"
        case _:
            raise AssertionError(mishap)
