import pytest

from dpal.campaign.config import checked_config
from dpal.errors import WrongSettings


@pytest.mark.parametrize(
    ("document", "settings", "message"),
    [
        ({"plan": {"target_epsilon": 8}}, ["plan.epoch=3"], r"--set plan\.epoch=3: .*did you mean plan\.epochs\?"),
        ({"plan": {"target_epsilon": 8}}, ["plann.epochs=3"], r"--set plann\.epochs=3: plann: .*did you mean plan\?"),
        ({}, ["learning_rate=1"], r"did you mean training\.learning_rate\?"),
        ({"plan": {"target_epsilon": 8, "epsilon": 8}}, [], r"c\.yaml: plan\.epsilon: .*mean plan\.target_epsilon\?"),
        ({"data": {"source": "digits", "unit": {}}}, [], r"c\.yaml: data\.unit: must be exactly one of column, file"),
        ({"data": {"source": "digits", "unit": {"colum": "x"}}}, [], r"data\.unit\.colum: .*mean data\.unit\.column\?"),
        (
            {"evaluation": {"source": "digits", "is_public": True, "unit": {"pattern": "x", "column": "y"}}},
            [],
            r"c\.yaml: evaluation\.unit: must be exactly one of column, file",
        ),
        ({}, ["zzz=1"], r"--set zzz=1: there is no such setting\."),
        ({"training": {"device": "gpu"}}, [], r"c\.yaml: training\.device: must be auto, cpu, cuda"),
        ({}, ["training.device=cuda0"], r"--set training\.device=cuda0: must be auto"),
        ({"plan": {"target_epsilon": 8}}, ["plan.query_sizes=100"], r"query_sizes=100: must be a list, such as"),
        ({}, ["model=small-cnn"], r"--set model=small-cnn: is a section: .*such as model\.name="),
        ({}, ["training=fast"], r"--set training=fast: is a section"),
        ({}, ["training.learning_rate=fast"], r"--set training\.learning_rate=fast: input should be a valid number"),
    ],
)
def test_the_setting_is_named_with_its_origin_and_the_nearest_name(
    document: object, settings: list[str], message: str
) -> None:
    with pytest.raises(WrongSettings, match=message):
        checked_config(document, settings, name="c.yaml")


def test_problems_of_the_file_and_of_the_command_line_are_told_apart() -> None:
    document = {"colour": "red", "plan": {"target_epsilon": 8}}
    with pytest.raises(WrongSettings) as refused:
        checked_config(document, ["plan.epoch=3", "training.device=cpu"], name="c.yaml")
    first, second, hint = str(refused.value).splitlines()
    assert {first.partition(": ")[0], second.partition(": ")[0]} == {"c.yaml", "--set plan.epoch=3"}
    assert "docs/campaigns.md" in hint


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:1"])
def test_devices_that_exist(device: str) -> None:
    assert checked_config({}, [f"training.device={device}"]).training.device == device
