"""Proposals of sampling rates: for every group the largest rate that a target allows, by tables of Rényi curves.

Proposals only: the certifying accountant decides what a phase really costs (phase_solver.py).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpal.privacy.renyi import DEFAULT_ORDERS
from dpal.privacy.sampled_gaussian import SMALLEST_NOISE_FOR_QUADRATURE, log_moments

Array = NDArray[np.float64]

_POINTS = 49
# A search for one of them by halves.
_STRIDES = (32, 16, 8, 4, 2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTable:
    """The curve of one step at one noise multiplier, for many sampling probabilities at once."""

    orders: Array
    log_rates: Array
    # One row per rate, one column per order.
    log_curves: Array

    def rates(self, room: Array, steps: int) -> Array:
        """For each group (rows of room: what may still be spent at each order) the rate; 0 where there is no room."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_room = np.where(room > 0, np.log(room / steps), -np.inf)
        # Straight lines between neighbours of the table, for all groups and orders at once. Below the table the
        # curve goes like the rate squared.
        columns = np.arange(len(self.orders))[None, :]
        below = self._below(log_room, columns)
        left = np.clip(below - 1, 0, _POINTS - 2)
        start, end = self.log_curves[left, columns], self.log_curves[left + 1, columns]
        stride = self.log_rates[1] - self.log_rates[0]
        with np.errstate(invalid="ignore"):
            inside = self.log_rates[left] + stride * (log_room - start) / (end - start)
            under = self.log_rates[0] + (log_room - self.log_curves[0]) / 2
        log_rate = np.where(below == 0, under, inside).max(axis=1)
        return np.where(log_rate >= self.log_rates[-1], 1.0, np.exp(np.minimum(log_rate, 0.0)))

    def _below(self, log_room: Array, columns: NDArray[np.intp]) -> NDArray[np.intp]:
        """How many of the table's rates cost less than the room at each order: curves rise with the rate."""
        below = np.zeros(log_room.shape, dtype=np.intp)
        for stride in _STRIDES:
            further = np.minimum(below + stride, _POINTS)
            below = np.where(self.log_curves[further - 1, columns] < log_room, further, below)
        return below


@lru_cache(maxsize=256)
def rate_table(noise_multiplier: float, orders: tuple[float, ...], *, exact: bool) -> RateTable:
    """The table for a noise multiplier; where it need not be exact, chords are quicker at little noise."""
    log_rates = np.linspace(math.log(1e-8), math.log(1 - 1e-9), _POINTS)
    noises = np.full(_POINTS, noise_multiplier)
    alpha = np.asarray(orders)
    quadrature_from = SMALLEST_NOISE_FOR_QUADRATURE if exact else math.inf
    moments = log_moments(np.exp(log_rates), noises, alpha, quadrature_from=quadrature_from)
    return RateTable(orders=alpha, log_rates=log_rates, log_curves=np.log(moments / (alpha - 1)))


def useful_orders(decisive: float) -> Array:
    """The orders around the one that decides; any subset gives valid bounds."""
    orders = np.asarray(DEFAULT_ORDERS)
    near = orders[(orders >= 1 + (decisive - 1) / 4) & (orders <= 4 * decisive)]
    return near[:: max(1, len(near) // 40)]
