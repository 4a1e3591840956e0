from pathlib import Path

import pytest
from settings import SMALL, edited

import dpal
from dpal.errors import BudgetExceeded, InvalidArgument


@pytest.fixture(scope="module")
def small() -> dpal.Plan:
    return dpal.plan(**SMALL)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["phases"][1].update(steps=document["phases"][1]["steps"] + 20),
        lambda document: document["phases"][0].update(noise_multiplier=0.9 * document["phases"][0]["noise_multiplier"]),
        lambda document: document.update(target_delta=1e-9),
        lambda document: document.update(target_epsilon=7.9),
    ],
)
def test_a_plan_edited_to_overspend_is_refused(small: dpal.Plan, change) -> None:
    with pytest.raises(BudgetExceeded, match=r"The plan spends ε = .*Nothing was charged"):
        dpal.read_plan(edited(small, change))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(epsilon=4.0),
        lambda document: document["groups"][1]["epsilon_by_phase"].__setitem__(2, 1.0),
        lambda document: document["groups"][0].update(size=40_000),
        lambda document: document["never_selected"]["epsilon_by_phase"].pop(),
        lambda document: document.update(selection_is_private=False),
        lambda document: document.update(schema_version=99),
        lambda document: document.pop("phases"),
        lambda document: document["phases"].pop(),
        lambda document: document["selections"].pop(),
        lambda document: document["selections"][0].update(mechanism="random"),
        lambda document: document["phases"][0].update(expected_batch_size=1.0),
        lambda document: document["phases"][0].update(sampling_probabilities=[1.5]),
        lambda document: document["phases"][0].update(surprise=1),
        lambda document: document["setting"].update(surprise=1),
        lambda document: document["setting"].update(pool_size=-1),
        lambda document: document["setting"].update(free_query_sizes="x"),
        lambda document: document["selections"][0].update(probability_high=0.95),
        lambda document: document["selections"][0].update(choice_epsilon=1e-4),
        lambda document: document["selections"][0].update(fraction_above=True),
        lambda document: document["selections"][0].update(choice_epsilon="abc"),
        lambda document: document["groups"].append({}),
        lambda document: document.update(planner=7),
        lambda document: document.update(surprise=1),
        lambda document: document.update(schema_version=True),
        lambda document: document.update(accountant=["rdp"]),
        lambda document: document["phases"][0].update(steps=10**400),
    ],
)
def test_a_plan_with_false_or_missing_statements_is_refused(small: dpal.Plan, change) -> None:
    with pytest.raises(InvalidArgument):
        dpal.read_plan(edited(small, change))


def test_a_plan_is_loaded_from_a_path_or_its_name(small: dpal.Plan, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(small.to_text(), encoding="utf-8")
    assert dpal.load_plan(file) == dpal.load_plan(str(file)) == small
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="UTF-8"):
        dpal.load_plan(file)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "null", '{"schema_version": NaN}', "[" * 100_000, "1" * 5000])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        dpal.read_plan(text)
