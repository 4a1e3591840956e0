"""Augmentation and dropout are the batch's own: the same whoever computes it, and in whatever order."""

import torch
from phases import seeded

from dpal.training.batch_randomness import batch_generators, batch_key

CPU = torch.device("cpu")


def drawn(places: list[tuple[int, int]], seed: int = 2) -> dict[tuple[int, int], tuple[float, float]]:
    """What augmentation and dropout would draw first in these batches of these steps."""
    with batch_generators(CPU, key=batch_key(seeded(seed))) as started:
        return {place: (float(torch.rand(1, generator=started(*place))), float(torch.rand(1))) for place in places}


def test_a_batch_draws_the_same_in_any_order_and_company() -> None:
    places = [(step, batch) for step in range(3) for batch in range(3)]
    numbers = drawn(places)
    assert drawn(places[::-1]) == numbers
    assert drawn(places[4:5]) == {places[4]: numbers[places[4]]}


def test_no_two_batches_draw_the_same() -> None:
    places = [(step, batch) for step in range(10) for batch in range(10)]
    values = [number for pair in drawn(places).values() for number in pair]
    assert len(set(values)) == len(values)
    assert not set(values) & {number for pair in drawn(places, seed=3).values() for number in pair}


def test_torch_is_left_as_it_was() -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    drawn([(0, 0)])
    assert torch.equal(torch.rand(1), expected)
