"""What rounding takes from δ stays far below what is charged for it, measured with a longer mantissa."""

import numpy as np
import pytest
import scipy.fft
from numpy.typing import NDArray

from dpal.privacy import composition
from dpal.privacy.composition import Parts, compose, window_of
from dpal.privacy.losses import Direction, loss_cells
from dpal.privacy.mechanisms import PoissonSampledGaussian

HISTORIES = [
    [(0.01, 4.0, 10_000)],
    [(256 / 60_000, 0.7, 16_406)],
    [(0.05, 1.0, 3_000)],
    [(1e-4, 0.6, 10_000_000)],
    [(0.5, 5.0, 2)],
    [(0.02, 1.629, 38), (0.04343, 2.93, 1_433), (0.12264, 0.607, 8)],
]
needs_long_floats = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="needs floats of 80 bits, which this processor does not have"
)


def with_long_floats(parts: Parts, window: tuple[int, int]) -> NDArray[np.longdouble]:
    """The composition as in dpal.privacy.composition, with a mantissa of 64 bits."""
    size = scipy.fft.next_fast_len(window[1] - window[0] + 1, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.clongdouble)
    for part, times in parts:
        folded = np.zeros(size, dtype=np.longdouble)
        np.add.at(folded, np.arange(len(part.probabilities)) % size, part.probabilities.astype(np.longdouble))
        spectrum *= composition._power(scipy.fft.rfft(folded), times)
    offset = sum(part.first * times for part, times in parts)
    return np.roll(scipy.fft.irfft(spectrum, size), (offset - window[0]) % size)


def lost(history: list[tuple[float, float, int]], direction: Direction) -> tuple[float, float]:
    """What rounding takes from δ at most, over many ε, and what is charged for it."""
    parts: Parts = [
        (
            loss_cells(PoissonSampledGaussian(sampling_probability=q, noise_multiplier=noise), 1e-4).distribution(
                direction
            ),
            times,
        )
        for q, noise, times in history
    ]
    window = window_of(parts)
    short = compose(parts, window)
    missing = np.maximum(with_long_floats(parts, window), 0) - np.maximum(short.probabilities, 0)
    taken = 0.0
    for epsilon in np.linspace(0, max(0.1, short.losses[-1]), 40):
        weights = np.where(short.losses > epsilon, -np.expm1(np.minimum(epsilon - short.losses, 0)), 0)
        taken = max(taken, float(missing @ weights))
    return taken, composition._ROUNDING * sum(times for *_, times in history)


@needs_long_floats
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_rounding_takes_less_than_a_third_of_what_is_charged(
    history: list[tuple[float, float, int]], direction: Direction
) -> None:
    taken, charged = lost(history, direction)
    assert 3 * taken <= charged


@needs_long_floats
def test_the_measurement_would_see_a_worse_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin with a planted fault: powers that lose a few digits."""
    power = composition._power
    precise = np.clongdouble

    def worse(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
        return power(values, exponent) * (1 if values.dtype == precise else 1 - 2e-14 * exponent)

    monkeypatch.setattr(composition, "_power", worse)
    taken, charged = lost([(0.01, 4.0, 10_000)], Direction.RECORD_FIRST)
    assert 3 * taken > charged
