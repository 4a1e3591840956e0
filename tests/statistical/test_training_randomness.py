"""Batches and noise of training, each test with a twin that plants a bug."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import chi2
from small_units import ragged
from statistics_helper import FALSE_FAILURE, rate_is
from torch import nn

from dpal.errors import InvalidArgument
from dpal.planning.plan import Phase
from dpal.randomness import SeededRandomness
from dpal.training import loop
from dpal.training.batches import Batch
from dpal.training.loop import train_phase
from dpal.training.losses import cross_entropy
from dpal.training.noise import chacha20_blocks, gaussian_noise
from dpal.training.sampling import BLANK, physical_rows, poisson_draw, seated
from dpal.training.settings import TrainingSettings
from dpal.training.sources import TensorSource


def seeded(seed: int = 5) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


def deviation_is(values: np.ndarray, deviation: float) -> bool:
    """Whether numbers of mean 0 have this standard deviation, two-sided, by the chi-squared law of their squares."""
    statistic = float((values**2).sum()) / deviation**2
    below = float(chi2.cdf(statistic, len(values)))
    return min(below, 1 - below) >= FALSE_FAILURE / 2


def test_every_group_takes_part_at_its_own_rate() -> None:
    groups = [np.arange(0, 1000), np.arange(1000, 1400), np.arange(1400, 1410)]
    rates, steps = (0.3, 0.05, 0.9), 1000
    randomness = seeded()
    counts = np.zeros(1410, dtype=int)
    for _ in range(steps):
        np.add.at(counts, poisson_draw(groups, rates, randomness=randomness), 1)
    for group, rate in zip(groups, rates, strict=True):
        taken, trials = int(counts[group].sum()), len(group) * steps
        assert rate_is(taken, trials, rate)
        # The twin: 5% too often.
        assert not rate_is(round(1.05 * taken), trials, rate)
    # Each by a coin of its own: the number drawn has the variance of independent coins.
    sizes = np.array([len(poisson_draw(groups[:1], rates[:1], randomness=randomness)) for _ in range(4000)])
    assert sizes.var() == pytest.approx(1000 * 0.3 * 0.7, rel=0.12)


def test_rates_of_zero_and_one_and_empty_draws() -> None:
    group = np.array([7, 9, 11])
    assert poisson_draw([group, group + 50], [0.0, 1.0], randomness=seeded()).tolist() == [57, 59, 61]
    empty = poisson_draw([group], [0.0], randomness=seeded())
    assert empty.tolist() == []
    assert seated(empty, 10, np.random.default_rng(0)) == []
    with pytest.raises(InvalidArgument, match="number of groups is 1"):
        poisson_draw([group], [0.1, 0.2], randomness=seeded())
    with pytest.raises(InvalidArgument, match=r"sampling_probability is 1\.5"):
        poisson_draw([group], [1.5], randomness=seeded())


@pytest.mark.parametrize("rows", [1, 7, 20, 100])
def test_seats_lose_and_repeat_nobody(rows: int) -> None:
    draw = np.arange(20)
    batches = seated(draw, rows, np.random.default_rng(0))
    everyone = np.concatenate(batches)
    assert all(len(batch) == rows for batch in batches)
    assert np.sort(everyone[everyone != BLANK]).tolist() == draw.tolist()
    assert len(batches) == -(-20 // rows)


def test_a_record_may_sit_anywhere_whoever_else_is_drawn() -> None:
    order = np.random.default_rng(1)
    for others in (0, 3, 6):
        draw = np.arange(1 + others)
        row = [int(np.flatnonzero(np.concatenate(seated(draw, 8, order)) == 0)[0]) for _ in range(8000)]
        counts = np.bincount(row, minlength=8)
        assert len(counts) == 8
        assert abs(counts - 1000).max() < 5.5 * np.sqrt(1000)


def test_the_rows_of_a_physical_batch_follow_from_public_numbers() -> None:
    assert physical_rows(400, 512, one_at_a_time=False) == 50
    assert physical_rows(3, 512, one_at_a_time=False) == 8
    assert physical_rows(400, 4, one_at_a_time=False) == 4
    assert physical_rows(400, 512, one_at_a_time=True) == 460
    with pytest.raises(InvalidArgument, match="max_physical_batch_size is 0"):
        physical_rows(400, 0, one_at_a_time=True)


def test_chacha20_is_the_published_one() -> None:
    # RFC 8439 section 2.3.2.
    key = torch.frombuffer(bytearray(range(32)), dtype=torch.int32)
    block = chacha20_blocks(key, torch.tensor([1], dtype=torch.int32), (0x09000000, 0x4A000000, 0))
    expected = """e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3
                  466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2"""
    assert [f"{int(word) & 0xFFFFFFFF:08x}" for word in block[:, 0]] == expected.split()


def test_noise_is_standard_normal() -> None:
    for count in (0, 1, 7, 8, 9):
        assert gaussian_noise(count, torch.device("cpu"), randomness=seeded()).shape == (count,)
    noise = gaussian_noise(100_000, torch.device("cpu"), randomness=seeded())
    values = noise.numpy()
    assert abs(values.mean()) < 5 / math.sqrt(len(values))
    assert deviation_is(values, 1.0)
    assert not deviation_is(0.95 * values, 1.0)
    for cut, share in ((0.0, 0.5), (1.0, 0.158655), (2.0, 0.022750), (3.0, 0.001350)):
        assert rate_is(int((values > cut).sum()), len(values), share)
    # Neighbours are independent, and two draws differ.
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / math.sqrt(len(values))
    assert not torch.equal(noise, gaussian_noise(100_000, torch.device("cpu"), randomness=seeded(6)))


@pytest.mark.parametrize("max_grad_norm", [0.5, 2.0])
def test_a_step_adds_the_planned_noise_whatever_the_clip(max_grad_norm: float) -> None:
    # Nobody takes part, so a gradient is noise alone: noise_multiplier · max_grad_norm / planned batch size.
    model = nn.Linear(200, 50)
    phase = Phase(steps=3, noise_multiplier=1.7, expected_batch_size=40.0, sampling_probabilities=(0.0,))
    seen: list[np.ndarray] = []
    train_phase(
        model,
        phase,
        source=TensorSource(torch.randn(10, 200), torch.randint(0, 50, (10,))),
        groups=[np.arange(10)],
        loss=lambda outputs, targets: nn.functional.cross_entropy(outputs, targets, reduction="none"),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        settings=TrainingSettings(max_grad_norm=max_grad_norm),
        randomness=seeded(),
        after_step=lambda _: seen.append(model.weight.grad.numpy().ravel().astype(np.float64)),
    )
    values = np.concatenate(seen)
    planned = 1.7 * max_grad_norm / 40
    assert abs(values.mean()) < 5 * planned / math.sqrt(len(values))
    assert deviation_is(values, planned)
    assert not deviation_is(0.95 * values, planned)
    assert not np.array_equal(seen[0], seen[1])


class NotesWhoIsRead(TensorSource):
    """Notes the records of every batch that training reads."""

    def __init__(self, count: int) -> None:
        super().__init__(torch.zeros(count, 2), torch.zeros(count, dtype=torch.int64))
        self.read: list[np.ndarray] = []

    def stream(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, torch.Tensor]]:
        for positions in batches:
            self.read.append(positions)
            yield self.batch(positions)


def times_taken(table: NDArray[np.int64], rate: float, steps: int) -> NDArray[np.int64]:
    """How often each unit takes part in training."""
    source, model = NotesWhoIsRead(int(table.max()) + 1), nn.Linear(2, 2)
    unit_of = np.full(len(source), BLANK)
    for unit, members in enumerate(table):
        unit_of[members[members != BLANK]] = unit
    counts = np.zeros(len(table), dtype=np.int64)

    def after_step(_: int) -> None:
        read = np.concatenate([*source.read, np.empty(0, dtype=np.int64)])
        counts[np.unique(unit_of[read])] += 1
        source.read.clear()

    train_phase(
        model,
        Phase(steps=steps, noise_multiplier=1.0, expected_batch_size=100.0, sampling_probabilities=(rate,)),
        source=source,
        groups=[np.arange(len(table))],
        units=table,
        loss=cross_entropy,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        settings=TrainingSettings(),
        randomness=seeded(),
        after_step=after_step,
    )
    return counts


def test_a_unit_is_drawn_as_one_however_many_records_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, rate, steps = [1] * 30 + [2] * 30 + [20] * 30, 0.1, 400
    table = ragged(sizes)

    def are_right(counts: NDArray[np.int64]) -> list[bool]:
        return [rate_is(int(counts[group : group + 30].sum()), 30 * steps, rate) for group in (0, 30, 60)]

    assert are_right(times_taken(table, rate, steps)) == [True, True, True]
    # The twin: a coin for each record, and the unit takes part if one of them shows heads.
    true = loop.poisson_draw
    coins = np.repeat(np.arange(len(sizes)), sizes)
    monkeypatch.setattr(loop, "poisson_draw", lambda groups, rates, **given: np.unique(true([coins], rates, **given)))
    assert are_right(times_taken(table, rate, steps)) == [True, False, False]
