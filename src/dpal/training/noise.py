"""Gaussian noise from a cryptographic stream: the operating system's on a CPU, ChaCha20 keyed by it elsewhere."""

import math

import torch
from torch import Tensor

from dpal.randomness import Randomness
from dpal.training import noise_kernel

_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_KEY_BYTES = 32
# Columns, then diagonals.
_QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def gaussian_noise(count: int, device: torch.device, *, randomness: Randomness) -> Tensor:
    """`count` independent standard normal numbers, in float64."""
    if count == 0:
        return torch.empty(0, dtype=torch.float64, device=device)
    # Sixteen words make eight normal numbers.
    blocks = (count + 7) // 8
    if device.type == "cpu":
        words = torch.frombuffer(bytearray(randomness.bytes(64 * blocks)), dtype=torch.int32).reshape(16, blocks)
        return normals(words)[:count]
    # The stream is made on the device: one key per step is transferred instead of all the noise.
    key = torch.frombuffer(bytearray(randomness.bytes(_KEY_BYTES)), dtype=torch.int32).to(device)
    if device.type == "cuda" and noise_kernel.AVAILABLE:
        words = noise_kernel.chacha20_blocks(key, blocks)
    else:
        words = chacha20_blocks(key, torch.arange(blocks, dtype=torch.int32, device=device), (0, 0, 0))
    return normals(words)[:count]


def normals(words: Tensor) -> Tensor:
    """Eight normal numbers per column of sixteen words, by Box-Muller in float64 from uniform numbers of 53 bits."""
    unsigned = words.to(torch.int64) & 0xFFFFFFFF
    high, low = unsigned[0::2], unsigned[1::2]
    # Half a step away from 0, where the logarithm is infinite.
    uniform = ((high << 21 | low >> 11).double() + 0.5) * 2.0**-53
    radius, angle = torch.sqrt(-2 * torch.log(uniform[0::2])), 2 * math.pi * uniform[1::2]
    return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)]).flatten()


def chacha20_blocks(key: Tensor, counters: Tensor, nonce: tuple[int, int, int]) -> Tensor:
    """(16, blocks): the key stream's words for each counter, as int32. RFC 8439 section 2.3."""
    fixed = [_word(value, counters) for value in _CONSTANTS]
    start = [*fixed, *(key[i].expand_as(counters) for i in range(8)), counters, *(_word(n, counters) for n in nonce)]
    state = list(start)
    for _ in range(10):
        for a, b, c, d in _QUARTERS:
            for add, mix, turn, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                state[add] = state[add] + state[mix]
                state[turn] = _rotated(state[turn] ^ state[add], bits)
    return torch.stack([after + before for after, before in zip(state, start, strict=True)])


def _word(value: int, like: Tensor) -> Tensor:
    signed = value - 2**32 if value >= 2**31 else value
    return torch.full_like(like, signed)


def _rotated(word: Tensor, bits: int) -> Tensor:
    # Right shifts of signed numbers copy the sign: the mask removes it.
    return word << bits | (word >> (32 - bits) & ((1 << bits) - 1))
