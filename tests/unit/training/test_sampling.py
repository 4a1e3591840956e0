"""Who takes part in a step. Rates and seats are tested statistically; here are the numbers that follow from them."""

import numpy as np
import pytest
from phases import seeded

from dpal.training.sampling import BLANK, most_drawn, physical_rows, poisson_draw, seated


def test_a_draw_has_the_groups_own_positions_and_nobody_twice() -> None:
    groups = [np.array([5, 3, 2**40]), np.array([7])]
    assert poisson_draw(groups, [1.0, 1.0], randomness=seeded()).tolist() == [5, 3, 2**40, 7]
    drawn = poisson_draw([np.arange(1000)], [0.5], randomness=seeded())
    assert len(set(drawn.tolist())) == len(drawn)
    assert poisson_draw([], [], randomness=seeded()).tolist() == []


def test_a_draw_is_neither_cut_nor_filled_up() -> None:
    """Either would change ε."""
    sizes = {len(poisson_draw([np.arange(50)], [0.5], randomness=seeded(seed))) for seed in range(20)}
    assert len(sizes) > 5


@pytest.mark.parametrize(("drawn", "rows", "batches"), [(1, 4, 1), (4, 4, 1), (5, 4, 2), (0, 4, 0)])
def test_every_batch_has_all_its_rows(drawn: int, rows: int, batches: int) -> None:
    found = seated(np.arange(drawn), rows, np.random.default_rng(0))
    assert [len(batch) for batch in found] == [rows] * batches
    assert sum(int((batch == BLANK).sum()) for batch in found) == batches * rows - drawn


def test_rows_never_exceed_what_fits() -> None:
    for one_at_a_time in (True, False):
        assert physical_rows(1e6, 512, one_at_a_time=one_at_a_time) == 512
        assert physical_rows(0.01, 512, one_at_a_time=one_at_a_time) == 8
        assert physical_rows(0.01, 1, one_at_a_time=one_at_a_time) == 1


def test_the_most_that_a_step_draws_is_public_and_never_more_than_everyone() -> None:
    assert most_drawn(100.0, 50) == 50
    assert most_drawn(100.0, 10**6) == 4 * 100 + 4096
    # Four planned draws, rounded up.
    assert most_drawn(0.1, 10**6) == 4097


def test_a_batch_holds_whole_units_and_at_least_one() -> None:
    for rows_per_unit, units in ((1, 64), (2, 32), (30, 2), (64, 1), (65, 1), (1000, 1)):
        assert physical_rows(1e6, 64, one_at_a_time=True, rows_per_unit=rows_per_unit) == units
    # On a CPU an eighth of the draw, which counts units.
    assert physical_rows(400, 512, one_at_a_time=False, rows_per_unit=4) == 50


def test_processes_have_the_batches_of_one_on_a_cpu_and_equal_parts_of_a_draw_on_a_gpu() -> None:
    on_cpu = [physical_rows(400, 512, one_at_a_time=False, processes=count) for count in (1, 2, 8, 16)]
    assert on_cpu == [50, 50, 50, 25]
    on_gpu = [physical_rows(400, 512, one_at_a_time=True, processes=count) for count in (1, 2, 4)]
    assert on_gpu == [460, 230, 115]
