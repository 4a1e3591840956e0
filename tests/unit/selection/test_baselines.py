import numpy as np
from selections import seeded

from dpal.selection import HighestScores, RandomSelection


def test_masked_scores_count_as_the_lowest() -> None:
    masked = np.ma.MaskedArray([0.9, 0.5, 0.4], mask=[True, False, False])
    selection = HighestScores(query_size=1, unlabelled=3)
    assert selection.choose(masked, highest=1.0, randomness=seeded()).to_label.tolist() == [1]


def test_ties_are_broken_at_random() -> None:
    selection = HighestScores(query_size=1, unlabelled=3)
    picked = {
        int(selection.choose(np.full(3, 0.5), highest=1.0, randomness=seeded(seed)).to_label[0]) for seed in range(40)
    }
    assert picked == {0, 1, 2}


def test_random_does_not_look_at_scores() -> None:
    selection = RandomSelection(query_size=10, unlabelled=100)
    first, second = (
        selection.choose(scores, highest=1.0, randomness=seeded()) for scores in (np.zeros(100), np.linspace(0, 1, 100))
    )
    assert first.to_label.tolist() == second.to_label.tolist()
    assert selection.released.mechanisms() == ()
