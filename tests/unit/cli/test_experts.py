"""The commands about the people who label."""

import json
from pathlib import Path

import pytest
from command_line import dpal_here as dpal
from pictures import pixels, write_png
from small_campaigns import linear_campaign

from dpal.campaign.guidelines import read_guidelines


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    linear_campaign(tmp_path / "c", oracle="files")
    return tmp_path


def words(done) -> str:
    return " ".join((done.stdout + done.stderr).split())


def test_people_and_rules(desk: Path) -> None:
    assert "Nobody yet" in words(dpal("experts", "list", "c", cwd=desk))
    assert "Dr. Ng is added as expert." in words(dpal("experts", "add", "c", "Dr. Ng", "Dr. Ito", cwd=desk))
    dpal("experts", "add", "c", "Prof. Sato", "--role", "arbiter", cwd=desk)
    said = words(dpal("experts", "arrange", "c", "--overlap", "0.25", "--rule", "unanimous", cwd=desk))
    assert "25% of them to two; a label counts where all answers agree" in said
    assert "old link of Dr. Ng does not work any more" in words(dpal("experts", "renew", "c", "Dr. Ng", cwd=desk))
    assert "Your old link does not work any more" in words(dpal("experts", "renew", "c", "--operator", cwd=desk))
    for unclear in ([], ["Dr. Ng", "--operator"]):
        assert "--operator for your own link" in words(dpal("experts", "renew", "c", *unclear, cwd=desk, codes=(2,)))
    dpal("experts", "remove", "c", "Dr. Ito", cwd=desk)
    arrangement = json.loads(dpal("experts", "list", "c", "--json", cwd=desk).stdout)["internal"]
    assert [(person["name"], person["role"]) for person in arrangement["people"]] == [
        ("Prof. Sato", "arbiter"), ("Dr. Ng", "expert"),
    ]  # fmt: skip
    table = words(dpal("experts", "list", "c", cwd=desk))
    assert "Prof. Sato" in table and "Each question goes to one expert" in table


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["add", "c", "Ng", "--role", "boss"], "one of expert, arbiter, officer"),
        (["add", "c", ""], "a name such as"),
        (["remove", "c", "Ng"], "someone who is there (nobody yet)"),
        (["arrange", "c", "--see", "some"], "everyone or split"),
        (["guidelines", "c", "none.txt"], "There is no file none.txt"),
        (["guidelines", "c", "c.txt", "--example", "words"], "words and a file"),
        (["add", "nowhere", "Ng"], "not a campaign"),
    ],
)
def test_mistakes_are_said(desk: Path, command: list[str], message: str) -> None:
    (desk / "c.txt").write_text("x")
    assert message in words(dpal("experts", *command, cwd=desk, codes=(2, 5)))


def test_guidelines(desk: Path) -> None:
    (desk / "guide.txt").write_text("Look at the edge.", encoding="utf-8")
    write_png(desk / "ill.png", pixels(1))
    said = words(dpal("experts", "guidelines", "c", "guide.txt", "--example", "ill=ill.png", cwd=desk))
    assert "with 1 example(s)" in said
    assert read_guidelines(desk / "c").examples == ("ill",)
    (desk / "latin.txt").write_bytes(b"\xe9\xe8")
    assert "UTF-8" in words(dpal("experts", "guidelines", "c", "latin.txt", cwd=desk, codes=(2,)))
