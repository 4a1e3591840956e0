"""The arithmetic of clipping by hand: norms, usable gradients, sums in float64, and the margin for rounding."""

import math

import numpy as np
import pytest
import torch

from dpal.errors import InvalidArgument
from dpal.training.engines.clipping import (
    blank_broken,
    is_usable,
    on_grid,
    rounding_margin,
    row_norms,
    sum_grid,
    weighted_sum,
)


def test_a_records_norm_is_over_all_its_parameters() -> None:
    stored = {"weight": torch.tensor([[[3.0]], [[0.0]]]), "bias": torch.tensor([[4.0], [2.0]])}
    assert row_norms(stored).tolist() == [5.0, 2.0]


def test_norms_do_not_overflow_where_float32_would() -> None:
    norms = row_norms({"weight": torch.full((1, 4), 1e30)})
    assert norms.dtype == torch.float64
    assert norms.item() == pytest.approx(2e30)


def test_what_is_broken_or_too_large_to_be_scaled_is_not_usable() -> None:
    norms = torch.tensor([0.0, 1e20, 2.0**100, math.inf, math.nan], dtype=torch.float64)
    assert is_usable(norms, 1.0).tolist() == [True, True, False, False, False]


def test_broken_gradients_become_zeros_and_no_other_row_changes() -> None:
    stored = {"weight": torch.tensor([[1.0, 2.0], [math.inf, 3.0], [math.nan, 4.0]])}
    blank_broken(stored, row_norms(stored))
    assert stored["weight"].tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def test_the_margin_follows_from_public_sizes() -> None:
    assert rounding_margin(25_000, 512, 0) < 1e-7
    assert rounding_margin(25_000, 512, 64) < 1e-3
    assert rounding_margin(2_000, 64, 16) > rounding_margin(1_000, 64, 16)
    with pytest.raises(InvalidArgument, match="max_physical_batch_size is 65536"):
        rounding_margin(10_000_000, 65_536, 1024)


def test_sums_of_stored_gradients_are_those_of_a_loop_in_float64() -> None:
    stored = torch.randn(7, 3, 5000, generator=torch.Generator().manual_seed(3))
    factors = torch.rand(7, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    wanted = np.tensordot(factors.numpy(), stored.double().numpy(), axes=1)
    assert float(np.abs(weighted_sum(stored, factors).numpy() - wanted).max()) < 1e-14


def sums_in_several_orders(batch_sums: list[torch.Tensor]) -> set[bytes]:
    """One after the other, backwards, and as two and three processes would add them."""
    sums = [sum(batch_sums), sum(batch_sums[::-1])]
    sums += [sum(sum(batch_sums[rank::count]) for rank in range(count)) for count in (2, 3)]
    return {total.numpy().tobytes() for total in sums}


def test_sums_on_the_grid_have_the_same_bits_in_any_order() -> None:
    generator = torch.Generator().manual_seed(5)
    for max_grad_norm, records in ((1.0, 25_000), (0.3, 7), (1e-3, 10**6)):
        # As large as the batches of a step may be together, in all sizes.
        scales = torch.logspace(-12, 0, 400, dtype=torch.float64).repeat(16, 1) * max_grad_norm * records / 16
        batches = list(scales * (2 * torch.rand(16, 400, generator=generator, dtype=torch.float64) - 1))
        grid = sum_grid(max_grad_norm, records)
        assert len(sums_in_several_orders([on_grid(batch, grid) for batch in batches])) == 1
        # Without the grid they differ, so the test would notice.
        assert len(sums_in_several_orders(batches)) > 1


def test_the_grid_moves_a_sum_by_less_than_the_margin_says() -> None:
    max_grad_norm, records, numbers = 0.7, 4_000, 5_000
    grid = sum_grid(max_grad_norm, records)
    sums = torch.randn(2, numbers, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    moved = (on_grid(sums[0], grid) - on_grid(sums[1], grid)) - (sums[0] - sums[1])
    added = rounding_margin(records, 8, 0, numbers) - rounding_margin(records, 8, 0)
    assert 0 < float(moved.norm()) <= grid * numbers**0.5 <= added * max_grad_norm
    assert torch.equal(on_grid(on_grid(sums, grid), grid), on_grid(sums, grid))
    # For models and pools of any size it is next to nothing.
    assert rounding_margin(10**6, 512, 0, 10**9) - rounding_margin(10**6, 512, 0) < 1e-4
