"""How many threads compute on a CPU: as many as are fastest now, which on a busy machine may be one.

Threads of one computation wait for each other. Where other programs use the cores too, two may be slower than one by
far, and nothing but a measurement shows it: cores may be shared, limited, or not real ones.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import nn

# The user's own choice, which torch follows by itself.
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
# How long each number of threads is tried, at least, and for how long the result is used.
_TRIED_SECONDS, _VALID_SECONDS = 0.15, 600.0
_LEAST_REPEATS = 3
# More threads must be faster by this factor: the other programs need the cores too.
_WORTH_IT = 1.1
# The choice and when it was made.
_chosen: tuple[int, float] | None = None


@contextmanager
def fastest_threads(*, keep: bool = False, processes: int = 1) -> Generator[None]:
    """Compute with the number of threads that is fastest now, and with the former number again afterwards.

    Several processes that compute together divide the threads: each must have the same number, so none is measured.

    With `keep` the number stays torch's own: how sums are rounded may depend on it, and seeded results must repeat. It
    also stays on a machine with a GPU, and where the user has set it. Nothing private is measured.
    """
    before = torch.get_num_threads()
    if processes > 1 and not any(os.environ.get(name) for name in VARIABLES):
        torch.set_num_threads(max(1, before // processes))
        try:
            yield
        finally:
            torch.set_num_threads(before)
        return
    if keep or before == 1 or torch.cuda.is_available() or any(os.environ.get(name) for name in VARIABLES):
        yield
        return
    try:
        torch.set_num_threads(_fastest(before))
        yield
    finally:
        torch.set_num_threads(before)


def _fastest(most: int) -> int:
    # One machine, one choice.
    global _chosen
    if _chosen is None or time.monotonic() - _chosen[1] > _VALID_SECONDS:
        candidates = [1 << power for power in range(most.bit_length()) if 1 << power < most]
        best, shortest = 1, float("inf")
        for threads in (*candidates, most):
            seconds = seconds_with(threads)
            if seconds * _WORTH_IT < shortest:
                best, shortest = threads, seconds
        _chosen = best, time.monotonic()
    return min(_chosen[0], most)


def seconds_with(threads: int) -> float:
    """The mean time of a small forward and backward pass on made-up images with so many threads."""
    torch.set_num_threads(threads)
    layer, images = nn.Conv2d(16, 32, 3, padding=1), torch.ones(32, 16, 16, 16)
    started, repeats = 0.0, -1
    # The first one starts the threads, and is not counted.
    while repeats < _LEAST_REPEATS or time.monotonic() - started < _TRIED_SECONDS:
        layer(images).relu().sum().backward()
        repeats += 1
        if repeats == 0:
            started = time.monotonic()
    return (time.monotonic() - started) / repeats
