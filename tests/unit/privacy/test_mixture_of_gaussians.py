"""Steps with several records of one person: k = 1 is the sampled Gaussian; weights, ranges and arguments."""

import math

import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.privacy.losses import Direction, loss_cells, loss_range
from dpal.privacy.mechanisms import Gaussian, PoissonSampledGaussian
from dpal.privacy.mixture_of_gaussians import MixtureOfGaussians, checked_records, step_of_several
from dpal.privacy.pld import privacy_profile


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.003, 4.0), (0.8, 0.5)])
def test_one_record_is_the_sampled_gaussian(rate: float, noise: float) -> None:
    single = PoissonSampledGaussian(sampling_probability=rate, noise_multiplier=noise)
    mixture = MixtureOfGaussians(rates=((rate, 1),), noise_multiplier=noise)
    assert loss_range(mixture) == pytest.approx(loss_range(single), rel=1e-12)
    ours, known = loss_cells(mixture, 1e-3), loss_cells(single, 1e-3)
    assert ours.first == known.first
    for name in ("under_record", "under_blank"):
        np.testing.assert_allclose(getattr(ours, name), getattr(known, name), atol=1e-14)
    for direction in Direction:
        profiles = [privacy_profile([(kind, 300)], direction) for kind in (single, mixture)]
        deltas = [profile.delta(np.array([0.1, 1.0, 3.0])) for profile in profiles]
        np.testing.assert_allclose(deltas[0], deltas[1], rtol=1e-9, atol=1e-14)


def test_weights_are_those_of_independent_draws() -> None:
    weights = np.exp(MixtureOfGaussians(rates=((0.3, 2), (0.05, 1)), noise_multiplier=1.0).log_weights())
    expected = np.convolve(np.convolve([0.7, 0.3], [0.7, 0.3]), [0.95, 0.05])
    np.testing.assert_allclose(weights, expected, rtol=1e-13)
    # The largest number of records: no weight is lost to underflow, and they sum to 1.
    many = MixtureOfGaussians(rates=((0.001, 600), (0.5, 400)), noise_multiplier=1.0).log_weights()
    assert np.isfinite(many).all() and len(many) == 1001
    assert math.fsum(np.exp(many)) == pytest.approx(1, abs=1e-11)


def test_edges_are_where_the_loss_is() -> None:
    mixture = MixtureOfGaussians(rates=((0.2, 7), (0.01, 20)), noise_multiplier=0.8)
    cells = loss_cells(mixture, 0.01)
    # Every cell's likelihood ratio lies between those of its ends.
    heavy = (cells.under_blank > 1e-250) & (cells.under_record > 1e-250)
    ratios = np.log(cells.under_record[heavy] / cells.under_blank[heavy])
    left = (cells.first + np.flatnonzero(heavy)) * 0.01
    assert (ratios >= left - 1e-9).all() and (ratios <= left + 0.01 + 1e-9).all()
    assert cells.under_record.sum() + cells.record_outside == pytest.approx(1, abs=1e-13)
    assert cells.under_blank.sum() + cells.blank_outside == pytest.approx(1, abs=1e-13)
    assert cells.record_outside < 1e-20


def test_more_records_and_higher_rates_never_cost_less() -> None:
    def delta(*rates: tuple[float, int]) -> float:
        step = MixtureOfGaussians(rates=rates, noise_multiplier=1.5)
        return float(privacy_profile([(step, 20)], Direction.RECORD_FIRST, 1e-3).delta(1.0)[0])

    growing = [delta((0.05, 1)), delta((0.05, 2)), delta((0.05, 2), (0.1, 1)), delta((0.1, 3)), delta((0.1, 9))]
    assert growing == sorted(growing)


def test_a_step_takes_its_simplest_form() -> None:
    single = PoissonSampledGaussian(sampling_probability=0.1, noise_multiplier=2.0)
    assert step_of_several([(0.1, 1), (0.0, 4)], 2.0) == single
    assert step_of_several([(0.0, 4), (0.3, 0)], 2.0) is None
    assert step_of_several([(1.0, 1), (0.1, 3)], 2.0) == Gaussian(noise_multiplier=0.5)
    assert step_of_several([(0.2, 1), (0.1, 2), (0.2, 1)], 2.0) == MixtureOfGaussians(
        rates=((0.1, 2), (0.2, 2)), noise_multiplier=2.0
    )


def test_impossible_arguments_are_refused() -> None:
    for rates in ((), ((0.1, 0),), ((0.1, 1001),), ((0.0, 2),), ((1.0, 2),), ((math.nan, 2),)):
        with pytest.raises(InvalidArgument):
            MixtureOfGaussians(rates=rates, noise_multiplier=1.0)
    for records in (0, -1, 1.5, 1001, True, "2"):
        with pytest.raises(InvalidArgument, match="records"):
            checked_records(records)
