"""How a step's batches are shared out, and that one process asks nobody."""

import pytest
import torch

from dpal.training.processes import OneProcess


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("batches", [0, 1, 4, 7])
def test_every_batch_is_computed_by_one_process(count: int, batches: int) -> None:
    shares = []
    for rank in range(count):
        process = OneProcess()
        process.rank, process.count = rank, count
        shares.append(list(process.share(range(batches))))
    assert sorted(number for share in shares for number in share) == list(range(batches))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_one_process_has_the_sum_already() -> None:
    total, broken = {"weight": torch.ones(2, dtype=torch.float64)}, torch.tensor(3)
    alone = OneProcess()
    assert alone.summed(total, broken) == (total, broken)
    assert [alone.all_agree(True), alone.all_agree(False)] == [True, False]
    alone.send(b"nobody hears it")
    alone.require_same("anything", "at all")
