"""Answers become a valid configuration, and a configuration the same answers again."""

from typing import Any

import pytest

from dpal.campaign.config import checked_config
from dpal.cli.answered_config import answers_in, config_of
from dpal.cli.init_questions import QUESTIONS

PLAN = {"epsilon": 4.0, "selections": "inside", "labels": 300, "phases": 2, "oracle": "files"}
FOLDER: dict[str, Any] = {
    "source": "image-folder",
    "place": "/scans",
    "ids_are_free": False,
    "held_out": "/held-out",
    "held_out_is_public": True,
    "classes": ["healthy", "ill"],
    "several_records": True,
    "model": "efficientnet-lite0",
    "size": 224,
    "channels": 1,
    **PLAN,
}
TEXTS: dict[str, Any] = {
    "source": "table",
    "place": "/pairs.csv",
    "kind": "texts",
    "column": ["premise", "hypothesis"],
    "id_column": "id",
    "ids_are_free": True,
    "held_out": "/test.csv",
    "held_out_is_public": True,
    "held_out_labels": "label",
    "classes": ["no", "yes"],
    "several_records": False,
    "model": "text-classifier",
    "text_model": "/bert",
    **PLAN,
}
HUB: dict[str, Any] = {
    "source": "hugging-face",
    "place": "cells",
    "split": "train",
    "kind": "images",
    "column": "image",
    "id_column": None,
    "held_out": "test",
    "held_out_is_public": True,
    "held_out_labels": "label",
    "classes": ["a", "b"],
    "several_records": False,
    "model": "resnet9",
    "size": 64,
    "channels": 3,
    **PLAN,
}
ARRAY: dict[str, Any] = {
    "source": "numpy",
    "place": "/pool.npy",
    "held_out": "/test.npy",
    "held_out_is_public": True,
    "held_out_labels": "/labels.npy",
    "classes": ["a", "b"],
    "several_records": False,
    "model": "small-cnn",
    **PLAN,
}
DIGITS: dict[str, Any] = {"source": "digits", "model": "resnet9", **PLAN, "oracle": "simulated"}
ALL = {"folder": FOLDER, "texts": TEXTS, "hub": HUB, "array": ARRAY, "digits": DIGITS}


@pytest.mark.parametrize("answers", ALL.values(), ids=ALL)
def test_answers_make_a_valid_configuration(answers: dict[str, Any]) -> None:
    config = checked_config(config_of(answers))
    assert config.data is not None
    assert config.model is not None
    assert config.plan is not None
    assert config.plan.labelling_budget == 300


def test_a_folder_with_an_encoder() -> None:
    options = {"folder": "/scans", "classes": ["healthy", "ill"], "size": 224, "channels": 1}
    assert config_of(FOLDER) == {
        "data": {"source": "image-folder", "options": options, "ids_are_free_of_content": False},
        "evaluation": {
            "source": "image-folder",
            "options": options | {"folder": "/held-out", "labels_from_folders": True},
            "is_public": True,
        },
        "plan": {"target_epsilon": 4.0, "labelling_budget": 300, "phases": 2, "selections": "inside"},
        "model": {"name": "features", "options": {"encoder": "efficientnet-lite0", "hidden": 0}},
        "oracle": "files",
    }


def test_texts_with_a_text_model() -> None:
    document = config_of(TEXTS)
    assert document["data"]["options"] == {
        "file": "/pairs.csv",
        "id_column": "id",
        "text": ["premise", "hypothesis"],
        "classes": ["no", "yes"],
    }
    assert document["evaluation"]["options"] == {
        "text": ["premise", "hypothesis"],
        "classes": ["no", "yes"],
        "file": "/test.csv",
        "label": "label",
    }
    assert document["text"] == {"tokenizer": "/bert"}
    assert document["model"] == {"name": "text-classifier", "options": {"name": "/bert"}}
    assert config_of(TEXTS | {"model": "minilm"})["model"]["options"]["encoder"] == "minilm"


def test_a_held_out_set_that_is_not_public_is_left_out() -> None:
    assert "evaluation" not in config_of(FOLDER | {"held_out_is_public": False})
    assert "evaluation" not in config_of(FOLDER | {"held_out": None})


def test_released_selections_start_with_half_of_the_labels() -> None:
    assert config_of(DIGITS | {"selections": "released"})["plan"]["initial_size"] == 150
    assert config_of(DIGITS | {"selections": "released", "phases": 1})["plan"]["initial_size"] == 300
    assert "initial_size" not in config_of(DIGITS)["plan"]


@pytest.mark.parametrize("answers", ALL.values(), ids=ALL)
def test_a_configuration_gives_its_answers_back(answers: dict[str, Any]) -> None:
    """All but what is not in the configuration: units, and that nothing was chosen."""
    typed = answers_in(config_of(answers))
    expected = {name: value for name, value in answers.items() if name != "several_records" and value is not None}
    assert set(typed) == set(expected)
    shown = {"yes": True, "no": False, "grey": 1, "colour": 3}
    for name, value in expected.items():
        if isinstance(value, list):
            assert typed[name] == ", ".join(value)
        else:
            assert shown.get(typed[name], typed[name]) == value or float(typed[name]) == value


@pytest.mark.parametrize("answers", ALL.values(), ids=ALL)
def test_answers_so_far_give_themselves_back(answers: dict[str, Any]) -> None:
    """Whenever someone stops. What the next answer completes may be missing until it is there."""
    order = [question.name for question in QUESTIONS if question.name in answers]
    assert len(order) == len(answers)
    for count in range(1, len(order) + 1):
        so_far = {name: answers[name] for name in order[:count]}
        typed = answers_in(config_of(so_far))
        late = {"several_records", "held_out", "held_out_is_public", "kind"}
        assert set(typed) >= {name for name in so_far if so_far[name] is not None} - late


def test_a_file_with_other_things_in_it_has_no_answers() -> None:
    assert answers_in({"data": 3, "plan": [1], "model": None}) == {}
    assert answers_in({"data": {"options": {"channels": [1], "classes": 3}}}) == {}
