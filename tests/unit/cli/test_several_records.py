import json
from pathlib import Path

import pytest
from command_line import dpal
from small_campaigns import linear_campaign, linear_plan

from dpal.reports.several_records import rows_of_plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("several")
    (place / "plan.json").write_text(linear_plan().to_text(), encoding="utf-8")
    linear_campaign(place / "clinic").run()
    return place


def test_a_plan_and_a_campaign(folder: Path) -> None:
    expected = [row.to_json() for row in rows_of_plan(linear_plan(), (1, 2, 5))]
    done = dpal("epsilon", folder / "plan.json", "--records-per-person", "5,1,2", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["delta"], document["plan"]) == (1e-3, expected)
    assert "charged" not in document
    done = dpal("epsilon", folder / "clinic", "--records-per-person", "1,2,5", "--json")
    document = json.loads(done.stdout)
    # The campaign is finished, so what was charged is the whole plan.
    assert document["charged"] == document["plan"] == expected
    shown = dpal("epsilon", folder / "clinic", "--records-per-person", "2").stdout
    assert "What was charged so far" in shown and "What the whole plan may spend" in shown
    assert f"{expected[1]['epsilon']:.4f}" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.json", "--records-per-person", "2"), "PLAN|CAMPAIGN is 'nowhere.json', but must be a plan's file"),
        (("--records-per-person", "2"), "PLAN|CAMPAIGN is ''"),
        (("plan.json",), "--records-per-person is ''"),
        (("plan.json", "--records-per-person", "0"), "whole numbers from 1 to 1,000"),
        (("plan.json", "--records-per-person", "two"), "whole numbers from 1 to 1,000"),
        (("plan.json", "--records-per-person", "25"), "at most 24, the records in the pool"),
        (("plan.json", "--records-per-person", "2", "--phase", "0.1,2,3"), "without other options"),
        ((), "--phase is ''"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(folder: Path, words: tuple[str, ...], message: str) -> None:
    done = dpal("epsilon", *(str(folder / word) if word == "plan.json" else word for word in words))
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
