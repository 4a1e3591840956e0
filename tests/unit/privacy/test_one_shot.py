import numpy as np
import pytest

from dpal.privacy.one_shot import one_shot_epsilon, weight_epsilon_for


def test_the_one_shot_epsilon_by_hand() -> None:
    # Ten records, all picked but one: nine times somebody else. The sum for w = e: Σ log(1 + (e − 1)/m), m = 10 … 2.
    exact = sum(np.log1p(np.expm1(1.0) / left) for left in range(10, 1, -1))
    assert one_shot_epsilon(1.0, 10, 9) == pytest.approx(exact) and exact > 1
    assert one_shot_epsilon(1.0, 10, 1) == 1.0
    assert one_shot_epsilon(1000.0, 3, 2) == pytest.approx(2000 - np.log(6))
    assert weight_epsilon_for(0.5, 10, 10) < 0.5
    assert one_shot_epsilon(weight_epsilon_for(0.5, 10, 10), 10, 10) <= 0.5
