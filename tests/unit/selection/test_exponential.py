import numpy as np
import pytest
from selections import seeded
from settings import SMALL

import dpal
from dpal.errors import InvalidArgument
from dpal.privacy.campaign_history import pure_epsilon
from dpal.selection import ExponentialSelection


def test_a_smaller_pool_than_planned_is_refused() -> None:
    selection = ExponentialSelection(query_size=5, unlabelled=100, weight_epsilon=1.0)
    assert selection.smallest_pool == 100
    with pytest.raises(InvalidArgument, match="at least 100"):
        selection.choose(np.zeros(99), highest=1.0, randomness=seeded())


def test_each_selection_keeps_within_its_share() -> None:
    plan = dpal.plan(**SMALL, accounting="basic", selection="exponential", selection_epsilon=2.0)
    for selection in plan.selections:
        assert 0.999 < pure_epsilon(selection.released.choice) <= 1.0


def test_bad_weights_are_named() -> None:
    with pytest.raises(InvalidArgument, match="weight_epsilon is nan"):
        ExponentialSelection(query_size=2, unlabelled=10, weight_epsilon=float("nan"))
