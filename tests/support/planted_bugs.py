"""Bugs that an audit must find: each breaks dpal's own code, as a slip could, while it is in use."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from dpal.planning.plan import Phase
from dpal.selection.cut import CutSelection
from dpal.selection.threshold import ThresholdSelection
from dpal.training import loop


@contextmanager
def noise_halved() -> Generator[None]:
    true = loop.set_noisy_gradients

    def planted(engine: Any, total: Any, phase: Phase, bound: float, randomness: Any) -> None:
        true(engine, total, replace(phase, noise_multiplier=phase.noise_multiplier / 2), bound, randomness)

    with patch.object(loop, "set_noisy_gradients", planted):
        yield


@contextmanager
def clip_forgotten() -> Generator[None]:
    """Gradients are clipped at four times the bound that noise is for."""
    true = loop.engine_for

    def planted(*given: Any, max_grad_norm: float, **options: Any) -> Any:
        return true(*given, max_grad_norm=4 * max_grad_norm, **options)

    with patch.object(loop, "engine_for", planted):
        yield


@contextmanager
def rate_doubled() -> Generator[None]:
    true = loop.poisson_draw

    def planted(groups: Any, rates: Any, **options: Any) -> Any:
        return true(groups, [min(1.0, 2 * rate) for rate in rates], **options)

    with patch.object(loop, "poisson_draw", planted):
        yield


@contextmanager
def divided_by_the_number_drawn() -> Generator[None]:
    """The gradient is divided by how many were drawn, which tells how many there are."""
    true_draw, true_set = loop.poisson_draw, loop.set_noisy_gradients
    drawn = [1]

    def draw(groups: Any, rates: Any, **options: Any) -> Any:
        result = true_draw(groups, rates, **options)
        drawn[0] = max(1, int((result != loop.BLANK).sum()))
        return result

    def planted(engine: Any, total: Any, phase: Phase, bound: float, randomness: Any) -> None:
        true_set(engine, total, replace(phase, expected_batch_size=float(drawn[0])), bound, randomness)

    with patch.object(loop, "poisson_draw", draw), patch.object(loop, "set_noisy_gradients", planted):
        yield


@contextmanager
def units_summed_not_averaged() -> Generator[None]:
    """Every record of a unit is clipped by itself, so a unit of four moves the sum by four."""
    true = loop.set_noisy_gradients

    def planted(engine: Any, total: Any, phase: Phase, bound: float, randomness: Any) -> None:
        true(engine, {name: 4 * value for name, value in total.items()}, phase, bound, randomness)

    with patch.object(loop, "set_noisy_gradients", planted):
        yield


@contextmanager
def cut_at_the_exact_rank() -> Generator[None]:
    def planted(self: CutSelection, counts: Any, randomness: Any) -> int:
        del randomness
        at_or_above = np.append(counts[::-1].cumsum()[::-1], 0)
        return int(np.abs(at_or_above - self.wanted).argmin())

    with patch.object(CutSelection, "_private_rank", planted):
        yield


@contextmanager
def choice_too_sharp() -> Generator[None]:
    """Threshold sampling leaves low scores out nearly always."""
    true = ThresholdSelection.taken

    def planted(self: ThresholdSelection, grid: Any, ids: Any, coins: Any, bound: int) -> Any:
        taken = true(self, grid, ids, coins, bound)
        # The same words of each record decide, so this is a part of those that were taken.
        return taken & ((grid >= bound) | coins.coins(Fraction(self.probability_low) / 8, ids))

    with patch.object(ThresholdSelection, "taken", planted):
        yield


# What to look for, and the attacks that must find it.
PLANTED: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "noise halved": (noise_halved, ("training", "campaign", "replay")),
    "clip forgotten": (clip_forgotten, ("training", "campaign", "replay", "lone-canary")),
    "rate doubled": (rate_doubled, ("training", "campaign", "replay")),
    "divided by the number drawn": (divided_by_the_number_drawn, ("lone-canary",)),
    "cut at the exact rank": (cut_at_the_exact_rank, ("cut",)),
}
PLANTED_IN_UNITS = {"units summed, not averaged": (units_summed_not_averaged, ("units",))}
PLANTED_IN_CHOICES = {"choice too sharp": (choice_too_sharp, ("choice",))}
