"""Going on after a model that is no better than chance: only when told, once for each phase, and on record."""

from pathlib import Path

import pytest
from small_campaigns import blind_campaign, blind_opened, linear_campaign

from dpal.campaign.campaign import Campaign
from dpal.campaign.going_on import advice
from dpal.errors import InvalidArgument
from dpal.reports.campaign_data import report_data


def test_it_goes_on_when_told_and_stays_told(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    # Labels come later: each run ends with the next wait.
    campaign = blind_campaign(folder, oracle="files")
    pool = campaign.parts.pool
    assert pool.labels is not None

    def answer() -> None:
        state = campaign.state()
        missing = state.missing(len(state.groups) - 1)
        labels = {name: int(pool.labels[pool.positions([name])[0]]) for name in missing}
        campaign.add_answers(labels, source="test")

    campaign.run()
    answer()
    assert campaign.run().is_stopped
    assert campaign.run().is_stopped
    assert campaign.run(go_on=True).is_waiting
    assert campaign.state().went_on == (0,)
    # Not a second time for the same phase.
    assert campaign.run().is_waiting
    answer()
    # The next phase's model is another one, and at chance too.
    status = campaign.run()
    assert status.is_stopped
    assert status.went_on_after == (1,)
    assert "phase 2" in status.next_step
    assert campaign.run(go_on=True).is_waiting
    answer()
    assert campaign.run().stage == "finished"
    assert campaign.state().went_on == (0, 1)
    assert campaign.verify().holds
    assert report_data(folder, internal=False)["status"]["went_on_after"] == (1, 2)


def test_one_word_is_enough_for_one_run(tmp_path: Path) -> None:
    campaign = blind_campaign(tmp_path / "c")
    assert campaign.run(go_on=True).stage == "finished"
    assert campaign.state().went_on == (0, 1)


def test_later_phases_may_be_trained_with_other_settings(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    campaign = blind_campaign(folder)
    spent = campaign.run().epsilon_spent
    with pytest.raises(InvalidArgument, match="go_on"):
        campaign.run(settings=["training.learning_rate=0.5"])
    with pytest.raises(InvalidArgument, match=r"plan\.epochs.*Nothing was changed"):
        campaign.run(go_on=True, settings=["plan.epochs=9"])
    assert campaign.status().is_stopped
    assert campaign.status().epsilon_spent == spent
    campaign.run(go_on=True, settings=["training.learning_rate=0.5"])
    assert campaign.config.training.learning_rate == 0.5
    assert campaign.parts.learner(campaign.parts.inputs).settings.learning_rate == 0.5
    again = blind_opened(folder)
    assert again.config.training.learning_rate == 0.5
    assert again.run(go_on=True).stage == "finished"
    assert Campaign(folder).verify().holds


def test_settings_are_refused_where_nothing_has_stopped(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    with pytest.raises(InvalidArgument, match="has stopped"):
        campaign.run(go_on=True, settings=["training.learning_rate=0.5"])
    assert campaign.status().stage == "planned"


def test_advice_names_what_helps_most_first_and_commands_that_work() -> None:
    words = advice(Path("my clinic"), 0.001)
    places = [words.index(what) for what in ("encoder", "larger learning rate", "more labels", "fewer phases")]
    assert places == sorted(places)
    assert "dpal run 'my clinic' --go-on --set training.learning_rate=0.003" in words
