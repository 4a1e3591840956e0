"""The schema of `dpal status --json` holds for what is really printed, at every stage, and names all of it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_line import dpal_here
from small_campaigns import blind_campaign, linear_campaign, linear_held_out, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.status import STAGES, Status
from dpal.campaign.status_schema import status_schema

SCHEMA = status_schema()


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The same, with names that are not in it refused."""
    changed = {name: strict(value) if isinstance(value, dict) else value for name, value in schema.items()}
    return changed | {"additionalProperties": False} if "properties" in schema else changed


VALIDATOR = jsonschema.Draft202012Validator(strict(SCHEMA))


def printed(folder: Path) -> dict[str, Any]:
    """Valid, and what the command printed."""
    document = json.loads(dpal_here("status", folder, "--json", cwd=folder.parent).stdout)
    VALIDATOR.validate(document)
    return document


def test_it_is_a_schema_and_every_name_has_words() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    fields = {**SCHEMA["properties"], **SCHEMA["properties"]["internal"]["properties"]}
    assert all(len(value["description"]) > 10 for value in fields.values())
    assert set(Status.__dataclass_fields__) | {"running"} == set(SCHEMA["properties"])
    # Programs that were written for it go on where a later version says more.
    assert "additionalProperties" not in SCHEMA


def test_the_command_prints_it(tmp_path: Path) -> None:
    assert json.loads(dpal_here("status", "--schema", cwd=tmp_path).stdout) == SCHEMA


@pytest.mark.parametrize("promise", ["inside", "released"])
def test_every_stage_of_a_campaign(tmp_path: Path, promise: str) -> None:
    folder, stages = tmp_path / "c", list[str]()
    options = {"evaluation": linear_held_out(), "evaluation_is_public": True}
    campaign = linear_campaign(
        folder, plan=linear_plan(selections=promise, selection="random"), oracle="files", **options
    )
    stages.append(printed(folder)["stage"])
    campaign.run()
    while (document := printed(folder))["stage"] == "waiting-for-labels":
        stages.append(document["stage"])
        assert ("asked" in document) == ("last_day" in document) == (promise == "released")
        assert ("asked" in document["internal"]) == (promise == "inside")
        state = campaign.state()
        campaign.add_answers(
            {name: "yes" if name > "r10" else "no" for name in state.missing(len(state.groups) - 1)}, source="us"
        )
        stages.append(printed(folder)["stage"])
        learner = campaign.runner.model.at(campaign.state())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(learner, "train", interrupted)
            with pytest.raises(KeyboardInterrupt):
                campaign.run(go_on=True)
        stages.append(printed(folder)["stage"])
        campaign.run(go_on=True)
    stages.append(document["stage"])
    assert document["running"] is None and len(document["metrics"]) == 3
    assert set(stages) == set(STAGES) - {"stopped-at-chance"}


def interrupted(*words: object, **options: object) -> None:
    raise KeyboardInterrupt


def test_a_campaign_that_stopped_and_one_that_gave_up(tmp_path: Path) -> None:
    campaign = blind_campaign(tmp_path / "blind")
    campaign.run()
    assert printed(tmp_path / "blind")["stage"] == "stopped-at-chance"
    campaign.run(go_on=True)
    assert printed(tmp_path / "blind")["went_on_after"]
    given_up = Campaign.create(
        tmp_path / "given-up", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated"
    )
    learner = given_up.runner.model.at(given_up.state())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            given_up.run()
    given_up.give_up()
    assert printed(tmp_path / "given-up")["phases_given_up"] == [1]


def test_a_writer_is_named(tmp_path: Path) -> None:
    from dpal.campaign.lock import only_writer

    linear_campaign(tmp_path / "c")
    with only_writer(tmp_path / "c"):
        assert printed(tmp_path / "c")["running"].startswith("Process ")


@pytest.mark.parametrize(
    "wrong",
    [{"stage": "somewhere"}, {"epsilon_spent": "8"}, {"labelled": 3}, {"asked": None}, {"internal": {}}],
)
def test_what_does_not_fit_is_found(tmp_path: Path, wrong: dict[str, object]) -> None:
    document = printed(linear_campaign(tmp_path / "c").folder)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document | wrong)
