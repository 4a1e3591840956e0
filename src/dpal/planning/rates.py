"""Proposals of sampling rates: for every group the largest rate that a target allows, by tables of Rényi curves.

Proposals only: what a phase really costs is for the certifying accountant to say (phase.py).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpal.privacy.renyi import DEFAULT_ORDERS
from dpal.privacy.sampled_gaussian import log_moments

Array = NDArray[np.float64]

_POINTS = 49


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTable:
    """The curve of one step at one noise multiplier, for many sampling probabilities at once."""

    orders: Array
    log_rates: Array
    # One row a rate, one column an order.
    log_curves: Array

    @classmethod
    def of(cls, noise_multiplier: float, orders: Array, lowest: float = 1e-8, highest: float = 1.0) -> "RateTable":
        log_rates = np.linspace(math.log(lowest), math.log(min(highest, 1 - 1e-9)), _POINTS)
        noises = np.full(_POINTS, noise_multiplier)
        moments = log_moments(np.exp(log_rates), noises, orders)
        return cls(orders=orders, log_rates=log_rates, log_curves=np.log(moments / (orders - 1)))

    def rates(self, room: Array, steps: int) -> Array:
        """For each group (rows of room: what may still be spent at each order) the rate; 0 where there is no room."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_room = np.where(room > 0, np.log(room / steps), -np.inf)
        best = np.full(len(room), -np.inf)
        top = self.log_rates[-1]
        for column in range(len(self.orders)):
            curve = self.log_curves[:, column]
            found = np.interp(log_room[:, column], curve, self.log_rates, left=-np.inf, right=np.inf)
            # Below the table the curve goes like the rate squared.
            below = self.log_rates[0] + (log_room[:, column] - curve[0]) / 2
            best = np.maximum(best, np.where(np.isneginf(found), below, found))
        return np.where(best > top, 1.0, np.exp(np.minimum(best, 0.0)))


def useful_orders(decisive: float) -> Array:
    """The orders around the one that decides; any subset gives valid bounds."""
    orders = np.asarray(DEFAULT_ORDERS)
    near = orders[(orders >= 1 + (decisive - 1) / 4) & (orders <= 4 * decisive)]
    return near[:: max(1, len(near) // 32)]


def conversion(orders: Array, delta: float) -> Array:
    """What the step from a curve to ε adds at each order (arXiv:2004.00010 Prop. 12)."""
    return np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
