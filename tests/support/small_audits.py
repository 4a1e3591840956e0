"""Plans that are small enough to attack in seconds, and a bug to find."""

from collections.abc import Callable

import numpy as np
import pytest
from torch import Tensor

import dpal
from dpal.audit.stand_in import StandIn, linear_model
from dpal.planning.plan import Plan
from dpal.training import loop


def small_plan(epsilon: float, records: int) -> Plan:
    """One phase on all records: 30 steps at a rate of a half."""
    return dpal.plan(
        target_epsilon=epsilon,
        # What one run can prove is less the larger δ is.
        target_delta=1e-7,
        pool_size=records,
        initial_size=records,
        query_sizes=[],
        selections="released",
        selection="random",
        epochs=15,
        batch_size=records // 2,
        accountant="rdp",
    )


def memorable(records: int, width: int, classes: int = 3) -> StandIn:
    """Random rows with random classes: there is nothing to learn from them but themselves."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(records, width))
    return StandIn(
        inputs=(10 * rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32),
        labels=generator.integers(0, classes, records),
        make_model=lambda: linear_model(width, classes),
    )


def hardly_any_noise(patched: pytest.MonkeyPatch, share: float = 0.001) -> None:
    """Training adds a tiny share of the noise that the plan asks for."""
    noise: Callable[..., Tensor] = loop.gaussian_noise
    patched.setattr(loop, "gaussian_noise", lambda *given, **named: share * noise(*given, **named))
