"""The private mean: one record moves the sum by at most 1, whatever it and the others are; and the noise is right."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from small_units import ragged
from torch import Tensor, nn

from dpal.data import from_arrays
from dpal.errors import DpalError, InvalidArgument
from dpal.randomness import SeededRandomness
from dpal.training import pool_mean
from dpal.training.pool_mean import centred, private_mean, set_centre, whole_rows

WIDTH = 5


class Plain(nn.Module):
    """A model that subtracts a mean from its inputs as they are."""

    centre: Tensor

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(width))

    def before_centre(self, rows: Tensor) -> Tensor:
        return rows


def mean_of(
    values: np.ndarray,
    *,
    noise: float = 1e-9,
    pool_size: int | None = None,
    seed: int = 1,
    units: np.ndarray | None = None,
) -> np.ndarray:
    pool = from_arrays(values.astype(np.float32), classes=("a", "b"))
    return private_mean(
        Plain(values.shape[1]),
        pool.records,
        pool_size=len(values) if pool_size is None else pool_size,
        noise_multiplier=noise,
        randomness=SeededRandomness(seed=seed, nothing_is_private=True),
        units=units,
    )


def test_it_is_the_mean_of_rows_that_are_short_enough() -> None:
    values = np.random.default_rng(0).normal(size=(3000, WIDTH)) * 0.1
    assert mean_of(values) == pytest.approx(values.mean(axis=0), abs=1e-7)
    # Long rows count with a norm of 1; the divisor is the planned number.
    assert mean_of(np.full((10, 1), 50.0), pool_size=20) == pytest.approx([0.5], abs=1e-8)


HARD = [
    np.full(WIDTH, 1e30),
    np.full(WIDTH, 3e38),
    np.full(WIDTH, 1e-30),
    np.array([1.0, 0, 0, 0, 0]),
    np.array([0.6, -0.8, 1e-9, 0, 0]),
    np.array([np.nan, 1, 1, 1, 1]),
    np.array([np.inf, -np.inf, 0, 0, 0]),
    np.ones(WIDTH) / np.sqrt(WIDTH) * (1 + 1e-7),
]


@pytest.mark.parametrize("record", HARD)
def test_one_record_moves_the_sum_by_at_most_one_and_by_its_own_row_alone(record: np.ndarray) -> None:
    others = np.random.default_rng(3).normal(size=(2047, WIDTH)) * 10.0 ** np.arange(-2, 3)
    without = whole_rows(np.vstack([others, np.zeros(WIDTH)])).sum(axis=0)
    with_record = whole_rows(np.vstack([others, record])).sum(axis=0)
    # Whole numbers: the difference is exact.
    moved = [int(value) for value in with_record - without]
    assert sum(value**2 for value in moved) <= 2**64
    alone = whole_rows(record[None, :])[0]
    assert moved == alone.tolist()


def test_places_and_company_do_not_matter() -> None:
    values = np.random.default_rng(4).normal(size=(2500, WIDTH))
    shuffled = values[np.random.default_rng(5).permutation(len(values))]
    assert np.array_equal(mean_of(values), mean_of(shuffled))


def test_the_noise_on_the_sum_has_the_planned_deviation() -> None:
    drawn = np.concatenate([mean_of(np.zeros((10, 400)), noise=7.0, seed=seed) for seed in range(5)]) * 10
    assert kstest(drawn / 7.0, "norm").pvalue > 1e-6
    # The twin: noise 10% too small is noticed.
    assert kstest(drawn / 7.0 * 0.9, "norm").pvalue < 1e-3


def test_a_model_without_a_centre_has_no_mean() -> None:
    with pytest.raises(InvalidArgument, match="only `features`, a head on an encoder, subtracts a mean"):
        centred(nn.Linear(2, 2))
    assert centred(model := Plain()) is model


def test_a_mean_of_another_width_is_refused() -> None:
    set_centre(model := Plain(2), (1.0, 2.0))
    assert model.centre.tolist() == [1.0, 2.0]
    with pytest.raises(InvalidArgument, match="coordinates is 3, but must be 2"):
        set_centre(model, (1.0, 2.0, 3.0))


def test_rows_are_rounded_towards_zero() -> None:
    unit = pool_mean._UNIT
    assert whole_rows(np.array([[1.9 * unit, -1.9 * unit, 0.0]])).tolist() == [[1, -1, 0]]


def plain_unit_mean(values: np.ndarray, table: np.ndarray, pool_size: int) -> np.ndarray:
    total = np.zeros(values.shape[1])
    for unit in table:
        rows = [values[position] for position in unit if position >= 0 and np.isfinite(values[position]).all()]
        if rows:
            mean = np.mean(rows, axis=0)
            total += mean / max(1.0, float(np.linalg.norm(mean)))
    return total / pool_size


def test_units_count_with_the_mean_of_their_records() -> None:
    rng = np.random.default_rng(6)
    sizes = [int(size) for size in rng.integers(0, 31, 150)]
    values = (rng.normal(size=(sum(sizes) + 3, WIDTH)) * 10.0 ** rng.integers(-2, 3, (sum(sizes) + 3, 1))).astype(
        np.float32
    )
    values[::17, 2] = np.nan
    table = ragged(sizes)
    found = mean_of(values, units=table, pool_size=150)
    assert found == pytest.approx(plain_unit_mean(values.astype(float), table, 150), abs=1e-8)
    # The twin: rows that are bounded before they are averaged give something else.
    short = values / np.maximum(1, np.linalg.norm(values, axis=1, keepdims=True))
    assert np.abs(plain_unit_mean(short.astype(float), table, 150) - found).max() > 1e-3


@pytest.mark.parametrize("record", HARD)
def test_one_unit_moves_the_sum_by_at_most_one_and_by_its_own_records_alone(record: np.ndarray) -> None:
    rng = np.random.default_rng(7)
    sizes = [int(size) for size in rng.integers(1, 9, 300)]
    values = rng.normal(size=(sum(sizes), WIDTH)).astype(np.float32)
    table, last = ragged(sizes, 8), sizes[-1]
    pools = {"blank": table.copy(), "hard": table, "alone": table[-1:]}
    pools["blank"][-1] = -1
    values[-last:] = record
    pool = from_arrays(values, classes=("a", "b"))

    def sum_of(units: np.ndarray) -> list[int]:
        rows = pool_mean._unit_rows(Plain(), pool.records, units)
        return [int(value) for value in whole_rows(rows).sum(axis=0)]

    # Whole numbers: the difference is exact.
    sums = {name: sum_of(units) for name, units in pools.items()}
    moved = [one - other for one, other in zip(sums["hard"], sums["blank"], strict=True)]
    assert moved == sums["alone"]
    assert sum(value**2 for value in moved) <= 2**64


def test_a_record_is_in_one_unit_of_the_mean() -> None:
    with pytest.raises(DpalError, match="occurs twice in the units"):
        mean_of(np.zeros((4, WIDTH)), units=np.array([[0, 1], [1, 2]]))


def test_a_table_of_one_column_gives_the_mean_of_records_bit_for_bit() -> None:
    values = np.random.default_rng(8).normal(size=(1500, WIDTH))
    assert np.array_equal(mean_of(values), mean_of(values, units=np.arange(1500)[:, None]))
