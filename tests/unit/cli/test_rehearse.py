"""The words of a rehearsal: what was tried, what to expect, and what it does not say."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpal.cli import app
from dpal.cli.app import AT_CHANCE
from dpal.cli.rehearse import sentences, shown
from dpal.errors import InvalidArgument, MissingData
from dpal.rehearsal.forecasts import Forecast, Rehearsal

CONFIG = """
data: {source: digits}
evaluation: {source: digits, options: {part: test}, is_public: true}
plan: {target_epsilon: 8, initial_size: 120, query_sizes: [60], batch_size: 64, epochs: 2, accountant: rdp}
model: {name: small-cnn}
training: {learning_rate: 8.0e-3}
"""


def rehearsal(**changed: object) -> Rehearsal:
    forecast = Forecast(
        target_epsilon=8.0,
        selection="cut",
        phases=({"accuracy": (0.4,)}, {"accuracy": (0.5, 0.6)}),
        remark="",
        at_chance=0,
        seconds=3.0,
    )
    given: dict[str, object] = {
        "stand_in": "half of the public held-out set",
        "is_like_the_pool": True,
        "distinct_records": 200,
        "classes": 2,
        "pool_classes": 2,
        "runs": 2,
        "pool_size": 5000,
        "labelling_budget": 500,
        "majority": 0.3,
        "encoding_seconds": 600.0,
        "forecasts": (forecast,),
    }
    return Rehearsal(**(given | changed))  # pyright: ignore[reportArgumentType]


def test_a_stand_in_like_the_pool_is_a_forecast_and_another_one_is_not() -> None:
    said = " ".join(sentences(rehearsal()))
    assert "200 different records, repeated until they fill a pool of 5,000; 500 labels" in said
    assert "from 2 of them" in said
    assert "Always answering the most frequent class would be right for 30.0%" in said
    assert "Expect about this from the campaign" in said
    assert "less than a minute, and encoding the records about 10 minutes. Nothing was charged." in said
    other = " ".join(sentences(rehearsal(is_like_the_pool=False, majority=None, encoding_seconds=0.0)))
    assert "may be easier or harder" in other
    assert "most frequent" not in other
    small = " ".join(sentences(rehearsal(pool_size=150, classes=10, runs=1)))
    assert "200 records, as many of them as a pool of 150" in small
    assert "These records have 10 classes; yours have 2." in small
    assert "±" not in small
    assert "encoding" not in other


def test_several_labels_have_an_auc_and_not_a_share() -> None:
    assert shown("auc", (0.7, 0.72)) == "0.710 ± 0.014"
    assert shown("accuracy", (0.7,)) == "70.0%"


def test_the_command_shows_a_table_or_json(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    shown = CliRunner().invoke(app, ["rehearse", str(tmp_path / "c.yaml"), "--runs", "1"])
    assert shown.exit_code in (0, AT_CHANCE), shown.output
    assert "balanced accuracy" in shown.output
    assert "Nothing was charged" in shown.output
    made = CliRunner().invoke(
        app, ["rehearse", str(tmp_path / "c.yaml"), "--runs", "1", "--json", "--set", "training.learning_rate=1e-30"]
    )
    assert made.exit_code == AT_CHANCE
    assert json.loads(made.stdout)["forecasts"][0]["at_chance"] == 1


def test_wrong_input_is_refused_before_anything_is_imported(tmp_path: Path) -> None:
    missing = CliRunner().invoke(app, ["rehearse", str(tmp_path / "none.yaml")])
    assert isinstance(missing.exception, MissingData)
    (tmp_path / "c.yaml").write_text(CONFIG)
    wrong = CliRunner().invoke(app, ["rehearse", str(tmp_path / "c.yaml"), "--epsilons", "1;2"])
    assert isinstance(wrong.exception, InvalidArgument)
    assert "such as 1,2,4,8" in str(wrong.exception)
    with pytest.raises(InvalidArgument):
        rehearsal_of_nothing(tmp_path)


def rehearsal_of_nothing(folder: Path) -> None:
    from dpal.rehearsal.forecasts import rehearse

    (folder / "empty.yaml").write_text("")
    rehearse(folder / "empty.yaml")
