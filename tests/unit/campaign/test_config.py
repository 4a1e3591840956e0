from pathlib import Path

import pytest

from dpal.campaign.config import CampaignConfig, checked_config, read_config
from dpal.errors import InvalidArgument, MissingData
from dpal.training.settings import TrainingSettings


def test_a_file_with_settings_on_top(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("data: {source: digits}\nplan:\n  target_epsilon: 8\nmodel: {name: resnet9}\n")
    found = read_config(file, ["plan.target_epsilon=4", "training.precision=bf16", "acquisition.name=bald"])
    assert found.plan is not None
    assert found.plan.target_epsilon == 4
    assert found.training.precision == "bf16"
    assert found.acquisition.name == "bald"
    # Written out it is complete, and read again it is the same.
    (tmp_path / "again.yaml").write_text(found.to_yaml())
    assert read_config(tmp_path / "again.yaml") == found
    assert "max_grad_norm: 1.0" in found.to_yaml()


@pytest.mark.parametrize(
    ("document", "settings", "message"),
    [
        ({"plan": {"epsilon": 8}}, [], r"plan\.target_epsilon: field required; plan\.epsilon"),
        ({"colour": "red"}, [], "colour"),
        ([], [], "names and values"),
        ({"training": {"learning_rate": "fast"}}, [], r"training\.learning_rate"),
        ({"evaluation": {"source": "digits", "is_public": False}}, [], r"evaluation\.is_public"),
        ({}, ["plan"], "key=value"),
        ({}, ["oracle.name=files"], "oracle"),
        ({"oracle": "files"}, ["oracle.name=files"], "is a value"),
        ({}, ["seed=[1"], "YAML"),
    ],
)
def test_what_is_wrong_is_named(document: object, settings: list[str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        checked_config(document, settings)


def test_files_that_are_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(MissingData):
        read_config(tmp_path / "none.yaml")
    (tmp_path / "c.yaml").write_text("a: [1\nb: }")
    with pytest.raises(InvalidArgument, match="YAML"):
        read_config(tmp_path / "c.yaml")


def test_an_empty_configuration_has_every_default() -> None:
    assert checked_config({}) == CampaignConfig()
    assert CampaignConfig().training.max_grad_norm == TrainingSettings().max_grad_norm
