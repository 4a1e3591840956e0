"""Chance that costs no privacy: how images are augmented, and which units drop out. It is the batch's own.

Each physical batch of each step has its own seed. So a record is augmented the same way whichever process computes its
batch, however many processes there are, and whatever the other batches hold.
"""

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch

from dpal.randomness import Randomness

# Seeds of torch's generators are whole numbers below 2**63.
_SEED_BYTES = 7


def batch_key(randomness: Randomness) -> bytes:
    """What the seeds of a phase's batches derive from. Nothing private rests on it."""
    return randomness.bytes(_SEED_BYTES)


@contextmanager
def batch_generators(device: torch.device, *, key: bytes) -> Generator[Callable[[int, int], torch.Generator]]:
    """Inside, a function of the step and the batch's number: it seeds torch, and returns a generator for augmentation.

    Dropout uses torch's own generators. Afterwards they are as before.
    """
    generator = torch.Generator(device=device)

    def started(step: int, batch: int) -> torch.Generator:
        place = step.to_bytes(8, "little") + batch.to_bytes(8, "little")
        digest = hashlib.blake2b(place, key=key, digest_size=2 * _SEED_BYTES).digest()
        torch.manual_seed(int.from_bytes(digest[:_SEED_BYTES], "little"))
        generator.manual_seed(int.from_bytes(digest[_SEED_BYTES:], "little"))
        return generator

    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield started
