"""Running: whom the oracle answers, what gets in, and what is kept."""

from pathlib import Path

import numpy as np
import pytest
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.errors import InvalidArgument


def test_records_that_were_labelled_before_are_the_initial_set(tmp_path: Path) -> None:
    pool = linear_pool()
    initial = pool.ids[5:13].tolist()
    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=pool, model=linear_model(), oracle="files", initial=initial
    )
    status = campaign.run()
    assert campaign.state().groups[0] == tuple(initial)
    # Their labels are the pool's own; only the query that follows waits for people.
    assert status.phases_done == 1
    assert status.stage == "waiting-for-labels"


class Nonsense:
    name = "nonsense"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def ask(self, ids: list[str], pool: object) -> dict[str, object]:
        return dict.fromkeys(ids, self.answer)


@pytest.mark.parametrize("answer", ["banana", 99, -1, (0.5,), 0.5, object(), ""])
def test_an_oracles_nonsense_does_not_get_in(tmp_path: Path, answer: object) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    campaign = Campaign.open(tmp_path / "c", pool=linear_pool(), model=linear_model(), oracle=Nonsense(answer))
    with pytest.raises(InvalidArgument, match="the answer for 'r"):
        campaign.run()
    assert campaign.status().stage == "waiting-for-labels"
    assert campaign.status().internal.labelled == 0


def test_numpys_numbers_are_answers_too(tmp_path: Path) -> None:
    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle=Nonsense(np.int64(1))
    )
    assert campaign.run().stage == "finished"


def test_what_an_expert_said_before_going_home_is_kept(tmp_path: Path) -> None:
    said: list[str] = []

    def expert(name: str, record: object) -> str:
        if len(said) == 5:
            raise KeyboardInterrupt
        said.append(name)
        return "yes"

    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle=expert
    )
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    assert set(campaign.state().answers) == set(said)
