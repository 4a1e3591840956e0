"""Tables of rates propose what the accountant then certifies: close to the largest rate that a target allows."""

import numpy as np
import pytest
from histories import step

from dpal.planning.rate_tables import rate_table, useful_orders
from dpal.privacy.renyi import DEFAULT_ORDERS, renyi_curve

ORDERS = (4.0, 8.0, 16.0)


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.05, 0.5])
def test_the_rate_of_a_curve_is_found_again(rate: float) -> None:
    room = renyi_curve([(step(rate, 1.5), 40)], ORDERS)[None, :]
    (found,) = rate_table(1.5, ORDERS, exact=True).rates(room, 40)
    assert found == pytest.approx(rate, rel=0.04)


def test_no_room_means_no_rate_and_much_room_means_everyone() -> None:
    table = rate_table(1.5, ORDERS, exact=True)
    room = np.array([[0.0] * 3, [-1.0] * 3, [1e9] * 3])
    assert table.rates(room, 10).tolist() == [0, 0, 1]


def test_one_order_with_room_is_enough() -> None:
    """ε is the smallest over the orders, so the best of them decides."""
    table = rate_table(1.5, ORDERS, exact=True)
    alone, both = np.array([[0.1, -1.0, -1.0]]), np.array([[0.1, 1e-9, -1.0]])
    assert 0 < table.rates(alone, 10)[0] == table.rates(both, 10)[0]


def test_more_steps_and_less_noise_mean_lower_rates() -> None:
    room = np.full((1, 3), 0.5)
    rates = [rate_table(1.5, ORDERS, exact=True).rates(room, steps)[0] for steps in (1, 10, 100, 1000)]
    assert rates == sorted(rates, reverse=True) and rates[-1] < rates[0] / 10
    assert rate_table(0.8, ORDERS, exact=True).rates(room, 10)[0] < rates[1]


def test_chords_propose_no_more_than_exact_tables() -> None:
    orders, room = (4.5, 8.5), np.full((1, 2), 0.5)
    exact, quick = (rate_table(0.7, orders, exact=kind).rates(room, 10)[0] for kind in (True, False))
    assert 0.5 * exact < quick <= exact * (1 + 1e-9)


@pytest.mark.parametrize("decisive", [DEFAULT_ORDERS[0], 4.0, 63.0, DEFAULT_ORDERS[-1]])
def test_useful_orders_lie_around_the_decisive_one(decisive: float) -> None:
    orders = useful_orders(decisive)
    assert 0 < len(orders) <= 80
    assert set(orders) <= set(DEFAULT_ORDERS)
    assert orders.min() <= decisive <= orders.max() or abs(orders - decisive).min() <= 0.1 * decisive
