from pathlib import Path

import numpy as np
import pytest
from small_campaigns import create, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import CampaignConfig, checked_config, read_config
from dpal.campaign.metrics import metrics_of
from dpal.errors import DamagedCampaign, InvalidArgument, MissingData


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
    assert CampaignConfig().training.settings().training.max_grad_norm == 1.0


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


def test_a_seeded_campaign_says_so_everywhere(tmp_path: Path) -> None:
    campaign = create(tmp_path / "c")
    assert not campaign.run().is_private
    assert not campaign.verify().is_private
    assert not campaign.export_model(tmp_path / "m.safetensors")["is_private"]


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


def test_records_that_were_labelled_before_are_the_initial_set(tmp_path: Path) -> None:
    pool = linear_pool()
    initial = pool.ids[5:13].tolist()
    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=pool, model=linear_model(), oracle="files", initial=initial
    )
    status = campaign.run()
    assert campaign.state().groups[0] == tuple(initial)
    # Their labels are the pool's own; only the query that follows waits for people.
    assert status.phases_done == 1
    assert status.stage == "waiting-for-labels"


def test_another_pool_or_acquisition_is_refused(tmp_path: Path) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    other = linear_pool()
    reordered = other.take(other.ids[::-1])
    with pytest.raises(DamagedCampaign, match="other ids or another order"):
        Campaign.open(tmp_path / "c", pool=reordered, model=linear_model())
    with pytest.raises(InvalidArgument, match="pool"):
        Campaign.open(tmp_path / "c", model=linear_model())
    with pytest.raises(InvalidArgument, match="model"):
        Campaign.open(tmp_path / "c", pool=other)


def test_a_model_of_another_shape_is_refused_before_any_charge(tmp_path: Path) -> None:
    import torch

    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated")
    campaign = Campaign.open(tmp_path / "c", pool=linear_pool(), model=torch.nn.Linear(4, 3))
    with pytest.raises(DamagedCampaign, match=r"initial\.safetensors"):
        campaign.run()
    assert [charge.kind for _, charge in campaign.state().charges] == ["charged-selection"]


def test_metrics_by_hand() -> None:
    logits = np.array([[2, 1], [0, 1], [3, 0], [0, 2]], np.float32)
    found = metrics_of(logits, np.array([0, 0, 0, 1]), multi_label=False, classes=("a", "b"))
    assert found == {"accuracy": 0.75, "balanced_accuracy": pytest.approx((2 / 3 + 1) / 2)}
    targets = np.array([[1, 0], [0, 0], [1, 0], [0, 0]], np.float32)
    assert metrics_of(logits, targets, multi_label=True, classes=("a", "b")) == {"auc": 1.0}
    tied = np.zeros((4, 2), np.float32)
    assert metrics_of(tied, targets, multi_label=True, classes=("a", "b"), evaluated=["a"]) == {"auc": 0.5}
    with pytest.raises(InvalidArgument, match="'c'"):
        metrics_of(logits, targets, multi_label=True, classes=("a", "b"), evaluated=["c"])
