"""Answers next to the campaign: written after each one, offered again, gone when the campaign is there."""

from pathlib import Path

import yaml

from dpal.cli.kept_answers import KeptAnswers

ANSWERS = {"source": "digits", "model": "resnet9", "epsilon": 4.0, "selections": "released"}


def test_answers_are_offered_again_until_the_campaign_exists(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "clinic")
    assert kept.offered() == {}
    kept.keep(ANSWERS)
    again = KeptAnswers(tmp_path / "clinic")
    assert again.offered() == {"source": "digits", "model": "resnet9", "epsilon": "4", "selections": "released"}
    again.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_second_interruption_loses_nothing(tmp_path: Path) -> None:
    KeptAnswers(tmp_path / "clinic").keep(ANSWERS)
    again = KeptAnswers(tmp_path / "clinic")
    again.keep({"source": "digits", "model": "small-cnn"})
    offered = KeptAnswers(tmp_path / "clinic").offered()
    assert offered == {"source": "digits", "model": "small-cnn", "epsilon": "4", "selections": "released"}


def test_another_source_forgets_what_was_said_about_the_first(tmp_path: Path) -> None:
    folder = {"source": "image-folder", "place": "/scans", "held_out": "/h", "held_out_is_public": True}
    KeptAnswers(tmp_path / "clinic").keep(folder | ANSWERS | {"source": "image-folder"})
    again = KeptAnswers(tmp_path / "clinic")
    again.keep({"source": "image-folder", "place": "/scans", "held_out": None})
    assert "held_out" not in KeptAnswers(tmp_path / "clinic").offered()
    again.keep({"source": "table"})
    assert KeptAnswers(tmp_path / "clinic").offered() == {"source": "table", "epsilon": "4", "selections": "released"}


def test_a_file_of_someone_else_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "clinic.yaml"
    file.write_text("data: {source: digits}\n")
    kept = KeptAnswers(tmp_path / "clinic")
    assert not kept.is_ours
    assert kept.offered() == {}
    kept.keep(ANSWERS)
    kept.remove()
    assert file.read_text() == "data: {source: digits}\n"


def test_a_damaged_file_offers_nothing(tmp_path: Path) -> None:
    KeptAnswers(tmp_path / "clinic").keep(ANSWERS)
    file = tmp_path / "clinic.yaml"
    mark = file.read_text().splitlines()[0]
    for text in (f"{mark}\n{{", f"{mark}\n- 1", f"{mark}\ndata: 3", mark):
        file.write_text(text)
        kept = KeptAnswers(tmp_path / "clinic")
        assert kept.offered() == {}
        kept.keep(ANSWERS)
        assert yaml.safe_load(file.read_text())["plan"]["target_epsilon"] == 4.0


def test_without_a_folder_to_write_to_nothing_is_kept(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "nowhere" / "clinic")
    kept.keep(ANSWERS)
    assert not kept.is_ours
    assert list(tmp_path.iterdir()) == []
