"""`dpal plan` for a model: how many parameters it has, and what is said where noise leaves it too little."""

import pytest
from command_line import dpal

from dpal.campaign.default_model import head_parameters
from dpal.cli.planned_model import RESNET9_PARAMETERS, planned_model
from dpal.errors import InvalidArgument

FEW = ("plan", "--epsilon", "8", "--pool-size", "5216", "--labelling-budget", "800", "--accountant", "rdp")


def test_parameters_are_counted() -> None:
    pytest.importorskip("torch")
    resnet9 = planned_model("resnet9", classes=2, parameters=None)
    assert resnet9 is not None
    assert (resnet9.parameters, resnet9.head_parameters) == (
        RESNET9_PARAMETERS,
        head_parameters("efficientnet-lite0", 2),
    )
    linear = planned_model("torch.nn:Identity", classes=2, parameters=None)
    assert linear is not None and linear.parameters == 0


def test_an_encoder_trains_its_head_alone() -> None:
    encoder = planned_model("minilm", classes=3, parameters=None)
    assert encoder is not None
    assert (encoder.parameters, encoder.head_parameters) == (769 * 3, None)
    assert planned_model(None, classes=2, parameters=None) is None


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("resnet10", {}, "--model is 'resnet10', but must be one of efficientnet-lite0, minilm, small-cnn"),
        ("text-classifier", {}, "For others, give --parameters"),
        ("resnet9", {"parameters": 5}, "--parameters is 5, but must be left out"),
        (None, {"parameters": 0}, "--parameters is 0, but must be at least 1"),
        ("minilm", {"classes": 0}, "--classes is 0, but must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused(name: str | None, options: dict, message: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(InvalidArgument, match=message):
        planned_model(name, **{"classes": 2, "parameters": None, **options})


def test_a_plan_names_a_model_that_cannot_learn() -> None:
    done = dpal(*FEW, "--parameters", "2440514")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert (
        "Expect this model to learn little, and nothing if the task is hard: in a step of phase 1 the noise is" in words
    )
    assert "a public encoder as the model, whose head has 1,570 parameters" in words


def test_without_a_model_it_says_what_a_network_from_scratch_can_expect() -> None:
    words = " ".join(dpal(*FEW, without="torch").stdout.split())
    assert "Expect a network from scratch to learn little, and nothing if the task is hard: over all steps" in words
    assert "--model resnet9 says what would help" in words
    assert "Expect" not in dpal("plan", "--epsilon", "8", "--accountant", "rdp").stdout


def test_an_encoder_is_planned_for_as_a_campaign_would() -> None:
    done = dpal(*FEW, "--model", "minilm")
    assert "First, a private mean of the features of all 5,216 records is released" in " ".join(done.stdout.split())
    assert "Expect" not in done.stdout
