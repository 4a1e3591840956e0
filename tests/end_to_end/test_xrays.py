"""The story of the X-rays: few labels, and a network from scratch that would spend the whole ε on learning nothing.

A plan that cannot learn is named before anything is charged, with what would help; a model at chance stops the campaign
before the next charge; and with the defaults, which take a public encoder, it does not come to that. Once with folders
of JPEGs that the test writes, and once with real chest X-rays, where they are at hand.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from command_line import checked
from PIL import Image
from real_data import real_file
from synthetic_pictures import waves

from dpal.campaign.default_model import IMAGE_ENCODER, encoder_available

pytestmark = pytest.mark.exhaustive

SUPPORT = Path(__file__).parents[1] / "support"
AT_CHANCE = 6
FINDINGS = tuple(f"finding-{number:02d}" for number in range(1, 15))


@dataclass(frozen=True)
class Hospital:
    """A folder with configurations of campaigns on the same records, from scratch and with the defaults."""

    folder: Path
    records: int
    classes: int
    labels: int

    def dpal(self, *words: object, code: int = 0) -> str:
        path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
        done = checked(*words, cwd=self.folder, codes=(code,), environment=os.environ | {"PYTHONPATH": path})
        return " ".join(done.stdout.split())

    def epsilon_spent(self, campaign: str) -> float:
        return json.loads(self.dpal("status", campaign, "--json"))["epsilon_spent"]

    def write(self, data: str, evaluation: str) -> None:
        sections = f"data: {data}\nevaluation: {evaluation}\noracle: simulated\n"
        plan = f"target_epsilon: 8, labelling_budget: {self.labels}, accountant: rdp"
        (self.folder / "defaults.yaml").write_text(f"{sections}plan: {{{plan}}}\n")
        # Five phases that choose, and so few steps that the test is quick.
        few = "phases: 5, planner: step-amplification, epochs: 1"
        # A network that never moves ends at chance every time; one that learns from noise does so nearly always.
        (self.folder / "scratch.yaml").write_text(
            f"{sections}plan: {{{plan}, {few}}}\n"
            "model: {name: 'blank_network:blank_resnet9'}\n"
            "training: {learning_rate: 1.0e-30, optimizer: sgd}\n"
        )


@pytest.fixture(scope="module")
def folders_of_jpegs(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    """Even surfaces and stripes, which anyone can tell apart."""
    hospital = Hospital(folder=tmp_path_factory.mktemp("jpegs"), records=240, classes=2, labels=120)
    rng = np.random.default_rng(0)
    for name, count, first in (("scans", hospital.records, 0), ("public", 60, hospital.records)):
        for number in range(first, first + count):
            even = np.full((3, 32, 32), rng.integers(40, 200))
            pixels = waves(32, number=number) if number % 2 else even + rng.integers(-20, 20, (3, 32, 32))
            file = hospital.folder / name / ("striped" if number % 2 else "even") / f"{number:03d}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8).transpose(1, 2, 0)).save(file)
    options = "classes: [even, striped], labels_from_folders: true, size: 28, channels: 3"
    hospital.write(
        f"{{source: image-folder, options: {{folder: scans, {options}}}}}",
        f"{{source: image-folder, is_public: true, options: {{folder: public, {options}}}}}",
    )
    return hospital


@pytest.fixture(scope="module")
def chest_xrays(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    hospital = Hospital(folder=tmp_path_factory.mktemp("xrays"), records=600, classes=14, labels=300)
    train, valid = (real_file(f"chestxray_64/{part}.parquet") for part in ("train", "valid"))
    options = (
        f"image: image, label: label, id_column: id, classes: [{', '.join(FINDINGS)}], multi_label: true, "
        "channels: 1, size: 32"
    )
    hospital.write(
        f"{{source: table, options: {{file: {train}, {options}}}}}",
        f"{{source: table, is_public: true, options: {{file: {valid}, {options}}}}}",
    )
    return hospital


@pytest.fixture(params=["folders_of_jpegs", "chest_xrays"])
def hospital(request: pytest.FixtureRequest) -> Hospital:
    return request.getfixturevalue(request.param)


def test_a_plan_that_cannot_learn_is_named_and_a_model_at_chance_stops_it(hospital: Hospital) -> None:
    sizes = ("--pool-size", hospital.records, "--labelling-budget", hospital.labels, "--phases", 5)
    few = ("--epsilon", 8, *sizes, "--accountant", "rdp")
    planned = hospital.dpal("plan", *few, "--model", "resnet9", "--classes", hospital.classes)
    created = hospital.dpal("init", "scratch", "--config", "scratch.yaml")
    head = 785 * hospital.classes
    for words in (planned, created):
        assert (
            "Expect this model to learn little, and nothing if the task is hard: in a step of phase 1 the noise is "
            in words
        )
        assert f"a public encoder as the model, whose head has {head:,} parameters (0." in words
    assert created.index("Expect this model") < created.index("Nothing has been charged yet")
    assert hospital.epsilon_spent("scratch") == 0
    # Whoever runs it all the same loses one phase's share of ε, and no more.
    said = hospital.dpal("run", "scratch", code=AT_CHANCE)
    # It may give the same answer to every record, which has words of its own.
    assert "No better than chance: " in said and " model that knows nothing has a" in said
    assert "The campaign has stopped, and nothing more was charged." in said
    spent = hospital.epsilon_spent("scratch")
    assert 0 < spent < 8
    hospital.dpal("run", "scratch", code=AT_CHANCE)
    assert hospital.epsilon_spent("scratch") == spent


@pytest.mark.skipif(not encoder_available(IMAGE_ENCODER), reason="needs pip install 'dpal[encoders]'")
def test_with_the_defaults_it_does_not_come_to_that(hospital: Hospital) -> None:
    created = hospital.dpal("init", "defaults", "--config", "defaults.yaml")
    assert "Model: the public encoder efficientnet-lite0" in created
    assert "Expect this model" not in created
    said = hospital.dpal("run", "defaults")
    assert json.loads(hospital.dpal("verify", "defaults", "--json"))["holds"]
    # 600 real X-rays with 14 rare findings are too few for that, noise or not: without any, the mean AUC is 0.57.
    if hospital.classes == 2:
        assert "No better than chance" not in said
        assert json.loads(hospital.dpal("status", "defaults", "--json"))["metrics"][-1]["balanced_accuracy"] > 0.8
