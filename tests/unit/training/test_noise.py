"""Noise by hand: Box-Muller from given bits, and the published key stream. Its distribution is tested statistically."""

import math

import pytest
import torch

from dpal.randomness import SeededRandomness
from dpal.training.noise import chacha20_blocks, gaussian_noise, normals


def bits(word: int) -> torch.Tensor:
    return torch.full((16, 1), word - 2**32 if word >= 2**31 else word, dtype=torch.int32)


def test_eight_numbers_by_hand() -> None:
    """Uniform numbers of one half, but for the low bits: radius √(2 ln 2), angle π."""
    radius = math.sqrt(2 * math.log(2))
    assert normals(bits(0x80000000)).tolist() == pytest.approx([-radius] * 4 + [0.0] * 4, abs=1e-8)


@pytest.mark.parametrize("word", [0, 0xFFFFFFFF])
def test_bits_that_are_all_alike_give_finite_numbers(word: int) -> None:
    """A uniform number of 0 would have an infinite logarithm."""
    found = normals(bits(word))
    assert torch.isfinite(found).all()
    assert float(found.abs().max()) <= math.sqrt(2 * 54 * math.log(2)) + 1e-9


def test_any_count_and_float64() -> None:
    seeded = [SeededRandomness(seed=1, nothing_is_private=True) for _ in range(2)]
    noise = gaussian_noise(13, torch.device("cpu"), randomness=seeded[0])
    assert (noise.shape, noise.dtype) == ((13,), torch.float64)
    assert torch.equal(noise, gaussian_noise(13, torch.device("cpu"), randomness=seeded[1]))


def test_the_key_stream_of_zeros_is_the_published_one() -> None:
    # RFC 8439 appendix A.1, test vectors 1 and 2: a key and a nonce of zeros, counters 0 and 1.
    found = chacha20_blocks(torch.zeros(8, dtype=torch.int32), torch.arange(2, dtype=torch.int32), (0, 0, 0))
    first = """ade0b876 903df1a0 e56a5d40 28bd8653 b819d2bd 1aed8da0 ccef36a8 c70d778b
               7c5941da 8d485751 3fe02477 374ad8b8 f4b8436a 1ca11815 69b687c3 8665eeb2"""
    assert [f"{int(word) & 0xFFFFFFFF:08x}" for word in found[:, 0]] == first.split()
    assert [f"{int(word) & 0xFFFFFFFF:08x}" for word in found[:2, 1]] == ["bee7079f", "7a385155"]
