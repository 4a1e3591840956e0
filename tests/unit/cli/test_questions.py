"""The questions of `dpal init`: answers become a configuration, and wrong ones are asked for again."""

import json
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from dpal.campaign.config import checked_config
from dpal.cli.questions import ask


def answered(*answers: str) -> tuple[dict[str, Any], str]:
    """The configuration that the answers give, and all that was printed before it."""
    app = typer.Typer()

    @app.command()
    def questions() -> None:
        typer.echo(f"\nRESULT{json.dumps(ask(None))}")

    done = CliRunner().invoke(app, [], input="\n".join(answers) + "\n")
    assert done.exit_code == 0, done.output
    printed, _, result = done.output.partition("\nRESULT")
    return json.loads(result), printed


def test_a_named_dataset_takes_five_answers() -> None:
    document, printed = answered("digit", "digits", "4", "100", "released", "simulated")
    assert "'digit' is not one of" in printed
    assert document["data"] == {"source": "digits"}
    assert document["plan"] == {
        "target_epsilon": 4.0,
        "labelling_budget": 100,
        "initial_size": 50,
        "selections": "released",
    }
    assert document["oracle"] == "simulated"
    checked_config(document)


def test_selections_stay_inside_unless_someone_says_otherwise() -> None:
    document, printed = answered("digits", "4", "100", "outside", "", "simulated")
    assert "'outside' is not one of inside, released" in printed
    assert "must never leave you" in printed
    assert "who knows that it is in the pool can tell if it was labelled" in printed
    assert document["plan"]["selections"] == "inside"
    assert checked_config(document).plan is not None


def test_own_images_are_asked_for_until_they_exist(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    document, printed = answered(
        "image-folder",
        str(tmp_path / "nowhere"),
        str(tmp_path / "images"),
        "healthy",
        "healthy, ill",
        "0",
        "32",
        "green",
        "grey",
        "n",
        "",
        "8",
        "200",
        "inside",
    )
    assert "There is no folder" in printed
    assert "at least two different names" in printed
    assert "It must be at least 1" in printed
    assert "'green' is not one of grey, colour" in printed
    options = document["data"]["options"]
    assert options == {
        "folder": str(tmp_path / "images"),
        "classes": ["healthy", "ill"],
        "size": 32,
        "channels": 1,
    }
    assert document["data"]["ids_are_free_of_content"] is False
    assert "evaluation" not in document
    checked_config(document)


def test_a_held_out_set_that_is_not_public_is_left_out(tmp_path: Path) -> None:
    for name in ("pool.npy", "test.npy", "labels.npy"):
        (tmp_path / name).write_bytes(b"")
    before = ("numpy", str(tmp_path / "pool.npy"), "a,b", str(tmp_path / "test.npy"), str(tmp_path / "labels.npy"))
    private, printed = answered(*before, "n", "8", "200", "inside")
    assert "left out" in printed
    assert "evaluation" not in private
    public, _ = answered(*before, "y", "8", "200", "inside")
    assert public["evaluation"]["is_public"] is True
    assert public["evaluation"]["options"]["labels"] == str(tmp_path / "labels.npy")
