"""Running: whom the oracle answers, what gets in, and what is kept."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from selections import seeded
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.choosing import queried
from dpal.campaign.state import State
from dpal.data import from_arrays
from dpal.errors import BadData, InvalidArgument


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


class OneArray:
    """Answers with one array that it fills again and again, and has no name."""

    def ask(self, ids: list[str], pool: object) -> Iterator[tuple[str, np.ndarray]]:
        answer = np.zeros(2, np.float32)
        for number, record_id in enumerate(ids):
            answer[:] = (number % 2, 1)
            yield record_id, answer


def test_an_oracle_may_use_one_array_for_all_answers(tmp_path: Path) -> None:
    pool = linear_pool()
    pool = from_arrays(
        np.zeros((len(pool), 4), np.float32), classes=["a", "b"], ids=pool.ids.tolist(), multi_label=True
    )
    campaign = Campaign.create(tmp_path / "c", plan=linear_plan(), pool=pool, model=linear_model(), oracle=OneArray())
    campaign.run()
    asked = campaign.state().groups[0]
    answers = [campaign.state().answers[record_id] for record_id in asked]
    assert answers == [(float(number % 2), 1.0) for number in range(len(asked))]


@pytest.mark.parametrize("given", [["yes", "no"], 7, {"nobody": "yes"}])
def test_what_is_not_answers_is_a_sentence(tmp_path: Path, given: object) -> None:
    class Strange:
        def ask(self, ids: list[str], pool: object) -> object:
            return given

    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle=Strange()
    )
    with pytest.raises(BadData, match=r"The oracle .*Strange"):
        campaign.run()


def cut_campaign(folder: Path, **options: object) -> Campaign:
    plan = linear_plan(selection="cut")
    chosen = {"plan": plan, "pool": linear_pool(), "model": linear_model(), "oracle": "simulated"} | options
    return Campaign.create(folder, **chosen, seed=7, not_private=True)


def labelled_too(state: State, *, ids: list[str]) -> State:
    """The state in which the last query has asked for these records instead of its own."""
    last = replace(state.selected[-1], to_label=tuple(ids), retired=())
    return replace(state, selected=(*state.selected[:-1], last))


def test_a_cut_is_released_even_when_nobody_is_left(tmp_path: Path) -> None:
    # With a blank instead of one record somebody would be left. So that no cut came would tell that it is a record.
    campaign = cut_campaign(tmp_path / "c")
    campaign.run()
    state = campaign.state()
    before = replace(state, selected=state.selected[:2])
    others = [name for name in campaign.parts.pool.ids.tolist() if name not in before.groups[0]]
    for ids in (others, others[1:], others[:1]):
        chosen = queried(
            labelled_too(before, ids=ids),
            campaign.schedule.selections[1],
            campaign.runner.units,
            campaign.parts,
            scores=lambda: np.linspace(0, 0.5, len(campaign.parts.pool)),
            randomness=seeded(),
        )
        assert chosen.threshold is not None
        assert not set(chosen.to_label.tolist()) & set(ids)


@pytest.mark.parametrize("acquisition", ["entropy", "bald"])
def test_who_is_labelled_changes_nobody_elses_score(tmp_path: Path, acquisition: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Dropout(0.4), torch.nn.Linear(64, 2))
    campaign = cut_campaign(tmp_path / "c", model=model, acquisition=acquisition)
    campaign.run()
    state = campaign.state()
    others = [name for name in campaign.parts.pool.ids.tolist() if name not in state.groups[0]]
    scores = [
        campaign.runner.scores(labelled_too(replace(state, selected=state.selected[:2]), ids=ids), seeded())
        for ids in ([], others[:1], others[::2], others)
    ]
    assert len(scores[0]) == len(campaign.parts.pool) and np.ptp(scores[0]) > 0
    for other in scores[1:]:
        assert other.tobytes() == scores[0].tobytes()
    # What a simulation shows are these scores, for the records that were not labelled before.
    shown, taken = campaign.simulated_scores(1)
    assert len(shown) == len(others) and taken.sum() == len(state.selected[1].to_label)


def test_a_blank_changes_nobody_elses_score(tmp_path: Path) -> None:
    # The scores of the others, bit for bit, when one record's content is replaced, dropout included.
    model = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Dropout(0.4), torch.nn.Linear(64, 2))
    campaign = cut_campaign(tmp_path / "c", model=model, acquisition="bald")
    campaign.run()
    learner, everyone = campaign.runner.model.at(campaign.state()), np.arange(len(campaign.parts.pool))
    before = learner.logits(everyone, passes=3, randomness=seeded())
    learner.source.inputs[5] = 1e3
    after = learner.logits(everyone, passes=3, randomness=seeded())
    assert (before[:, 5] != after[:, 5]).any()
    assert np.delete(before, 5, axis=1).tobytes() == np.delete(after, 5, axis=1).tobytes()
