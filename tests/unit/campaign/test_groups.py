"""Groups: blanks fill up what withdrawals took, and records without a label keep their place."""

import numpy as np
from small_campaigns import linear_pool
from small_facts import charged_selection, created, recorded, selected

from dpal.campaign.campaign_pool import members_of
from dpal.campaign.facts import Answered, Withdrawn
from dpal.campaign.groups import chosen_among_blanks
from dpal.campaign.state import fold
from dpal.randomness import SeededRandomness
from dpal.selection.acquisition import Entropy
from dpal.selection.baselines import RandomSelection
from dpal.training.sampling import BLANK


def test_withdrawn_records_leave_blanks_that_are_dropped_when_they_are_chosen() -> None:
    # Planned for ten records; six are left, so four blanks take part and all ten are chosen.
    selection = RandomSelection(query_size=10, unlabelled=10)
    ids = np.array([f"r{number}" for number in range(6)])
    chosen = chosen_among_blanks(
        selection,
        np.zeros(6),
        ids,
        Entropy(classes=2, multi_label=False),
        SeededRandomness(seed=1, nothing_is_private=True),
    )
    assert sorted(chosen.to_label.tolist()) == ids.tolist()


def test_a_record_without_a_label_keeps_its_place_as_a_blank() -> None:
    pool = linear_pool()
    first, second, third, fourth = pool.ids[:4].tolist()
    state = fold(
        recorded(
            created(),
            charged_selection(),
            selected(2, first, second, third, fourth),
            Answered(source="", answers={fourth: 1, first: 0, second: "skip", third: 1}),
            Withdrawn(ids=(third,), reason=""),
        )
    )
    assert members_of(state, 0, pool).tolist() == [0, BLANK, BLANK, 3]
