"""Settings are stated once: Python, YAML and experiments build the same values."""

import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest

from dpal import training
from dpal.campaign.config import Training, checked_config, training_section
from dpal.errors import InvalidArgument
from dpal.training import Augmentation, ComputeSettings, Scaling, TrainingSettings
from dpal.training.settings import DEFAULT_LEARNING_RATE, learning_rate_from_scratch


def test_a_configuration_has_the_fields_and_defaults_of_both() -> None:
    section = checked_config({}).training
    assert asdict(section) == asdict(TrainingSettings()) | asdict(ComputeSettings())
    assert isinstance(section, TrainingSettings) and isinstance(section, ComputeSettings)


def test_what_python_states_is_what_yaml_states() -> None:
    settings = TrainingSettings(
        learning_rate=2, optimizer="sgd", optimizer_options={"momentum": 0.9}, augmentation=Augmentation(copies=2)
    )
    compute = ComputeSettings(device="cpu", precision="bf16")
    document: dict[str, Any] = {
        "learning_rate": 2,
        "optimizer": "sgd",
        "optimizer_options": {"momentum": 0.9},
        "augmentation": {"copies": 2},
        "device": "cpu",
        "precision": "bf16",
    }
    from_python = checked_config({"training": training_section(settings, compute)})
    assert from_python == checked_config({"training": document})
    assert from_python.training == Training(
        **asdict(settings) | asdict(compute) | {"augmentation": Augmentation(copies=2)}
    )
    # Written out and read again it is the same.
    assert checked_config(from_python.model_dump(mode="json")) == from_python


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("device=gpu", "device=gpu: must be auto, cpu, cuda, or one GPU such as cuda:1"),
        ("device=cuda:x", "device=cuda:x: must be auto"),
        ("precision=float8", "precision=float8: must be one of float32"),
        ("max_physical_batch_size=0", "max_physical_batch_size=0: must be at least 1"),
        ("learning_rate=-1", "learning_rate=-1: must be a finite number above 0"),
        ("max_grad_norm=0", "max_grad_norm=0: must be"),
        ("average=1", "average=1: must be at least 0 and below 1"),
        ("pixel_deviation=0", "pixel_deviation=0: must be above 0"),
        ("augmentation.copies=0", r"augmentation\.copies=0: must be at least 1"),
        ("augmentation.colour=1", r"augmentation\.colour=1: there is no such setting"),
        ("epochs=3", r"epochs=3: there is no such setting \(did you mean plan\.epochs"),
    ],
)
def test_a_setting_that_cannot_be_is_named(setting: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        checked_config({}, [f"training.{setting}"])


def test_scaling_is_that_of_the_pixels() -> None:
    assert TrainingSettings().scaling == Scaling()
    assert TrainingSettings(pixel_mean=0.1, pixel_deviation=2).scaling == Scaling(mean=0.1, deviation=2)


def test_every_public_name_is_there() -> None:
    for name in training.__all__:
        assert getattr(training, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = training.nothing


def test_settings_and_data_do_without_torch() -> None:
    program = "import sys, dpal.training, dpal.campaign.config, dpal.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("use", ["from dpal.training import train_phase", "from dpal import models"])
def test_without_torch_there_is_an_install_hint(use: str) -> None:
    program = f"import sys; sys.modules['torch'] = None\n{use}"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert "MissingPackage: This needs torch, which is not installed: pip install 'dpal[train]'." in done.stderr


def test_a_stated_learning_rate_wins_and_then_the_models_own() -> None:
    size = {"parameters": 10_000, "steps": 100}
    assert TrainingSettings(learning_rate=0.5).learning_rate_for(0.02, **size) == 0.5
    assert TrainingSettings().learning_rate_for(0.02, **size) == 0.02
    assert TrainingSettings().learning_rate_for(None, **size) == pytest.approx(0.015)
    # The rule was fitted for optimizers that divide a gradient by its size.
    assert TrainingSettings(optimizer="sgd").learning_rate_for(None, **size) == DEFAULT_LEARNING_RATE


@pytest.mark.parametrize(
    ("parameters", "steps", "rate"),
    [
        # ResNet-9 on CIFAR-10: the experiments state 0.002 for 500 steps and 0.001 for 1,220.
        (2_447_562, 500, 0.0017),
        (2_447_562, 1_220, 0.0011),
        # The private demonstration on digits: 0.008.
        (10_026, 300, 0.0087),
        # Never above what was measured.
        (100, 1, 0.03),
    ],
)
def test_the_rule_for_networks_from_scratch(parameters: int, steps: int, rate: float) -> None:
    assert learning_rate_from_scratch(parameters, steps) == pytest.approx(rate, rel=0.05)
