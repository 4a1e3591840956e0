"""Our accountants beside Opacus and dp-accounting on 216 histories, to 1e-8."""

import warnings
from itertools import product

import pytest
from histories import step

from dpal.privacy.accountants import PldAccountant, RdpAccountant
from dpal.privacy.renyi import DEFAULT_ORDERS

dp_accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting (pip install dpal[peers])")
opacus_accountants = pytest.importorskip("opacus.accountants", reason="needs Opacus (pip install dpal[peers])")

OPACUS_ORDERS = DEFAULT_ORDERS[:151]
WHOLE_ORDERS = tuple(float(order) for order in (*range(2, 64), 128, 256, 512))

ONE_PHASE = [
    [(q, noise, steps)]
    for noise, q, steps in product((0.8, 1.0, 1.5, 2.5, 4.0, 6.0), (0.002, 0.01, 0.05, 0.2), (1, 30, 400))
]
# Two and three phases in which sampling, noise and steps change together.
TWO_PHASES = [
    [(q, noise, steps), (q / 2, 1.2 * noise, 2 * steps)]
    for noise, q, steps in product((1.0, 1.7, 3.0, 5.0), (0.004, 0.03, 0.3), (5, 20, 100))
]
THREE_PHASES = [
    [(q, noise, steps), (q / 3, noise, 2 * steps), (q / 4, noise * 0.9, 3 * steps)]
    for noise, q, steps in product((1.2, 2.0, 3.1, 4.1, 7.0, 9.0), (0.02, 0.05, 0.08, 0.2, 0.35, 0.5), (10, 40, 90))
]
HISTORIES = [*ONE_PHASE, *TWO_PHASES, *THREE_PHASES]
DELTA = 1e-5
CHUNKS = [HISTORIES[start::12] for start in range(12)]


def ours(history: list[tuple[float, float, int]]) -> list[tuple[object, int]]:
    return [(step(q, noise), steps) for q, noise, steps in history]


def composed(accountant, history: list[tuple[float, float, int]]):
    for q, noise, steps in history:
        accountant.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(noise)), steps)
    return accountant


def test_there_are_enough_histories() -> None:
    assert len(HISTORIES) >= 200


@pytest.mark.parametrize("chunk", CHUNKS)
def test_rdp_equals_opacus(chunk: list[list[tuple[float, float, int]]]) -> None:
    for history in chunk:
        theirs = opacus_accountants.RDPAccountant()
        theirs.history = [(noise, q, steps) for q, noise, steps in history]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Optimal order is the largest alpha")
            expected = theirs.get_epsilon(DELTA, alphas=list(OPACUS_ORDERS))
        assert RdpAccountant(orders=OPACUS_ORDERS).epsilon(ours(history), DELTA) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_rdp_equals_dp_accounting_at_whole_orders(chunk: list[list[tuple[float, float, int]]]) -> None:
    for history in chunk:
        expected = composed(dp_accounting.rdp.RdpAccountant(WHOLE_ORDERS), history).get_epsilon(DELTA)
        assert RdpAccountant(orders=WHOLE_ORDERS).epsilon(ours(history), DELTA) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("chunk", CHUNKS[:2])
def test_rdp_is_never_above_dp_accounting_at_fractional_orders(chunk: list[list[tuple[float, float, int]]]) -> None:
    # There dp-accounting adds absolute values where the series alternates: an upper bound, a little above.
    for history in chunk:
        expected = composed(dp_accounting.rdp.RdpAccountant(OPACUS_ORDERS), history).get_epsilon(DELTA)
        spent = RdpAccountant(orders=OPACUS_ORDERS).epsilon(ours(history), DELTA)
        assert 0.98 * expected < spent <= expected * (1 + 1e-12)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_pld_equals_dp_accounting(chunk: list[list[tuple[float, float, int]]]) -> None:
    for history in chunk:
        theirs = composed(dp_accounting.pld.PLDAccountant(), history)
        expected = theirs.get_epsilon(DELTA)
        spent = PldAccountant().epsilon(ours(history), DELTA)
        assert spent == pytest.approx(expected, rel=1e-8), history
        if expected > 0:
            assert PldAccountant().delta(ours(history), expected) == pytest.approx(DELTA, rel=1e-6)
