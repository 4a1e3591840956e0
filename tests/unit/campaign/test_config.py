from dataclasses import replace
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
    with pytest.raises(DamagedCampaign, match=r"1 record.* no longer in the data: 'r23'"):
        Campaign.open(tmp_path / "c", pool=other.take(other.ids[:-1]), model=linear_model())
    with pytest.raises(DamagedCampaign, match=r"1 record.* not in the campaign .*: 'r24'"):
        Campaign.open(tmp_path / "c", pool=linear_pool(25), model=linear_model())
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


class Nonsense:
    name = "nonsense"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def ask(self, ids: list[str], pool: object) -> dict[str, object]:
        return dict.fromkeys(ids, self.answer)


@pytest.mark.parametrize("answer", ["banana", 99, -1, (0.5,), 0.5, object(), ""])
def test_an_oracles_nonsense_does_not_get_in(tmp_path: Path, answer: object) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    campaign = Campaign.open(tmp_path / "c", pool=linear_pool(), model=linear_model(), oracle=Nonsense(answer))
    with pytest.raises(InvalidArgument, match="the answer for 'r"):
        campaign.run()
    assert campaign.status().stage == "waiting-for-labels"
    assert campaign.status().internal.labelled == 0


def test_numpys_numbers_are_answers_too(tmp_path: Path) -> None:
    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle=Nonsense(np.int64(1))
    )
    assert campaign.run().stage == "finished"


def test_what_an_expert_said_before_going_home_is_kept(tmp_path: Path) -> None:
    said: list[str] = []

    def expert(name: str, record: object) -> str:
        if len(said) == 5:
            raise KeyboardInterrupt
        said.append(name)
        return "yes"

    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle=expert
    )
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    assert set(campaign.state().answers) == set(said)


def test_other_classes_are_noticed_wherever_labels_come_in(tmp_path: Path) -> None:
    pool = linear_pool()
    campaign = Campaign.create(tmp_path / "c", plan=linear_plan(), pool=pool, model=linear_model())
    campaign.run()
    swapped = replace(pool, classes=pool.classes[::-1])
    (tmp_path / "labels.csv").write_text("id,label\n")
    for attempt in (
        lambda: campaign.import_labels(tmp_path / "labels.csv", swapped),
        lambda: campaign.export_labels(tmp_path / "out", swapped),
        lambda: Campaign.open(tmp_path / "c", pool=swapped, model=linear_model()),
    ):
        with pytest.raises(DamagedCampaign, match="yes, no"):
            attempt()


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
    import torch

    with pytest.raises(InvalidArgument, match="one a class"):
        Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=torch.nn.Linear(4, 1))
    assert not (tmp_path / "c").exists()


def test_a_function_may_make_the_model_and_options_survive(tmp_path: Path) -> None:
    from dpal.selection.acquisition import Bald

    def maker() -> object:
        import torch

        return torch.nn.Sequential(torch.nn.Dropout(0.2), torch.nn.Linear(4, 2))

    Campaign.create(
        tmp_path / "c",
        plan=linear_plan(),
        pool=linear_pool(),
        model=maker,
        acquisition=Bald(classes=2, number_of_passes=7),
        oracle="simulated",
    )
    campaign = Campaign.open(tmp_path / "c", pool=linear_pool(), model=maker)
    assert campaign.parts.acquisition == Bald(classes=2, number_of_passes=7)
    assert campaign.run().stage == "finished"


@pytest.mark.parametrize("planner", ["naive", "step-amplification", "noise-reduction", "continual", "no-al"])
@pytest.mark.parametrize(
    ("selection", "accounting"), [("threshold", "branch"), ("laplace", "renyi"), ("laplace", "basic")]
)
def test_status_and_verify_give_one_number_at_any_time(
    tmp_path: Path, planner: str, selection: str, accounting: str
) -> None:
    """At every step of a campaign's life, what status shows is what the charges cost."""
    plan = linear_plan(planner=planner, selection=selection, accounting=accounting)
    shown: list[tuple[float, float]] = []

    def expert(name: str, record: object) -> str:
        status, found = campaign.status(), campaign.verify()
        assert found.holds, found.checks
        shown.append((status.epsilon_spent, found.epsilon_spent))
        return "yes" if name > "r10" else "no"

    campaign = Campaign.create(tmp_path / "c", plan=plan, pool=linear_pool(), model=linear_model(), oracle=expert)
    campaign.run()
    final = campaign.verify()
    shown.append((campaign.status().epsilon_spent, final.epsilon_spent))
    assert all(status == spent for status, spent in shown)
    assert final.holds
    assert abs(final.epsilon_spent - plan.epsilon) <= 1e-9
