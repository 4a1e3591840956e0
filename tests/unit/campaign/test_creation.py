"""What cannot work is refused when a campaign is made, before anything is charged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.data import from_arrays
from dpal.errors import InvalidArgument


def made(folder: Path, **options: Any) -> Campaign:
    options = {"plan": linear_plan(), "pool": linear_pool(), "model": linear_model()} | options
    return Campaign.create(folder, **options)


def test_bald_needs_dropout_from_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="dropout above 0"):
        made(tmp_path / "c", acquisition="bald")
    assert not (tmp_path / "c").exists()


def test_a_pool_without_labels_cannot_simulate_people(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no labels of its own"):
        made(tmp_path / "c", pool=replace(linear_pool(), labels=None), oracle="simulated")


def test_a_held_out_set_of_another_shape_is_refused(tmp_path: Path) -> None:
    others = from_arrays(np.zeros((3, 5), dtype=np.float32), classes=["no", "yes"], labels=[0, 1, 0])
    with pytest.raises(InvalidArgument, match=r"evaluation's records is \(5,\), but must be \(4,\)"):
        made(tmp_path / "c", evaluation=others, evaluation_is_public=True)


def test_a_learning_rate_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"training\.learning_rate: must be a finite number above 0"):
        made(tmp_path / "c", training={"learning_rate": -1})


def test_yaml_that_reads_no_as_false_is_noticed() -> None:
    with pytest.raises(InvalidArgument, match="names in quotes"):
        from_arrays(np.zeros((2, 2)), classes=[False, True])
    assert from_arrays(np.zeros((2, 2)), classes=[1, 2]).classes == ("1", "2")


def test_classes_called_by_numbers_can_be_simulated(tmp_path: Path) -> None:
    pool = replace(linear_pool(), classes=("1", "2"))
    campaign = made(tmp_path / "c", pool=pool, oracle="simulated")
    assert campaign.run(go_on=True).stage == "finished"
    labels = dict(zip(pool.ids.tolist(), pool.labels.tolist(), strict=True))
    assert all(labels[name] == answer for name, answer in campaign.state().answers.items())


def test_a_seed_needs_the_word(tmp_path: Path) -> None:
    for seed, not_private in ((7, False), (None, True)):
        with pytest.raises(InvalidArgument, match="not_private"):
            Campaign.create(
                tmp_path / "c",
                plan=linear_plan(),
                pool=linear_pool(),
                model=linear_model(),
                seed=seed,
                not_private=not_private,
            )
    assert not (tmp_path / "c").exists()


def test_a_campaign_without_private_selection_must_say_so(tmp_path: Path) -> None:
    plan = linear_plan(selection="none")
    with pytest.raises(InvalidArgument, match="not_private"):
        Campaign.create(tmp_path / "c", plan=plan, pool=linear_pool(), model=linear_model())


@pytest.mark.parametrize("kind", ["plan", "initial", "unknown", "evaluation", "exists"])
def test_a_campaign_that_cannot_be_is_refused_whole(tmp_path: Path, kind: str) -> None:
    folder, pool = tmp_path / "c", linear_pool()
    options = {"plan": linear_plan(), "pool": pool, "model": linear_model()}
    match kind:
        case "plan":
            options["plan"] = linear_plan(records=30)
        case "initial":
            options["initial"] = pool.ids[:3].tolist()
        case "unknown":
            options["initial"] = ["nobody"] * 8
        case "evaluation":
            options["evaluation"] = pool
        case _:
            folder.mkdir()
            (folder / "thesis.txt").write_text("mine")
    with pytest.raises((InvalidArgument, ValueError)):
        Campaign.create(folder, **options)  # type: ignore[arg-type]
    assert not folder.exists() or [path.name for path in folder.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"optimizer": "adamw9"}, "optimizer"),
        ({"engine": "steam"}, "engine"),
        ({"precision": "fp8"}, "precision"),
        ({"device": "cuda:7"}, "no GPU"),
    ],
)
def test_settings_that_cannot_work_are_found_before_the_campaign_exists(
    tmp_path: Path, training: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), training=training)
    assert not (tmp_path / "c").exists()


def test_a_model_with_too_few_outputs_is_found_before_the_campaign_exists(tmp_path: Path) -> None:

    with pytest.raises(InvalidArgument, match="one per class"):
        Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=torch.nn.Linear(4, 1))
    assert not (tmp_path / "c").exists()
