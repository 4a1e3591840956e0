"""A phase that cannot finish is given up: its charge stands, its model is never used, and the rest goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_campaigns import linear_held_out, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import read_config
from dpal.campaign.facts import ChargedTraining, GivenUp, Trained
from dpal.campaign.files import digest
from dpal.campaign.layout import CONFIG
from dpal.campaign.ledger import Ledger
from dpal.campaign.step_randomness import SealedKeys
from dpal.campaign.writer import writing
from dpal.errors import DamagedCampaign, InvalidArgument, MissingData, NothingToGiveUp
from dpal.planning.plan import Plan
from dpal.privacy.rounding import rounded_up
from dpal.reports.campaign_data import report_data
from dpal.reports.campaign_report import write_report
from dpal.reports.certificate import certificate_of, verify_certificate
from dpal.reports.comparison import run_of

PLAN = linear_plan()


class Broken(Exception):
    """Training cannot end."""


def made(folder: Path, *, oracle: str = "simulated", plan: Plan = PLAN, **options: Any) -> Campaign:
    return Campaign.create(
        folder,
        plan=plan,
        pool=linear_pool(),
        model=linear_model(),
        oracle=oracle,
        evaluation=linear_held_out(40),
        evaluation_is_public=True,
        **options,
    )


def reopened(folder: Path) -> Campaign:
    return Campaign.open(
        folder,
        pool=linear_pool(),
        model=linear_model(),
        evaluation=linear_held_out(40),
        evaluation_is_public=True,
    )


def stuck(folder: Path, phase: int) -> Campaign:
    """Run until this phase (from 0) is charged, and let its training fail."""
    campaign = reopened(folder)
    learner = campaign.runner.model.at(campaign.state())
    train = learner.train

    def failing(planned: Any, *args: Any, **options: Any) -> Any:
        if planned == PLAN.phases[phase]:
            raise Broken
        return train(planned, *args, **options)

    learner.train = failing  # type: ignore[method-assign]
    with pytest.raises(Broken):
        campaign.run(go_on=True)
    open_charge = campaign.state().open_charge
    assert open_charge is not None
    assert open_charge[1] == ChargedTraining(phase=phase, **_numbers(phase))
    return reopened(folder)


def _numbers(phase: int) -> dict[str, Any]:
    planned = PLAN.phases[phase]
    return {
        "steps": planned.steps,
        "noise_multiplier": planned.noise_multiplier,
        "expected_batch_size": planned.expected_batch_size,
        "sampling_probabilities": planned.sampling_probabilities,
    }


@pytest.mark.parametrize("given_up", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
def test_the_campaign_goes_on_from_the_newest_model(tmp_path: Path, given_up: tuple[int, ...]) -> None:
    folder = tmp_path / "c"
    made(folder)
    for phase in given_up:
        campaign = stuck(folder, phase)
        spent = campaign.status().epsilon_spent
        result = campaign.give_up(reason="it never ends")
        assert result.phase == phase + 1
        assert result.epsilon_at_end == pytest.approx(PLAN.epsilon, abs=1e-9)
        # The charge stands.
        assert campaign.status().epsilon_spent == spent > 0
        assert campaign.verify().holds
        assert SealedKeys(folder).charges() == []
    assert reopened(folder).run(go_on=True).stage == "finished"
    campaign = reopened(folder)
    state = campaign.state()
    assert state.given_up == given_up
    trained = [phase for phase in range(3) if phase not in given_up]
    assert [each.phase for each in state.trained] == trained
    assert [each.phase for each in state.evaluated] == trained
    assert [each.file for each in state.trained] == [f"checkpoints/phase-{phase + 1}.safetensors" for phase in trained]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "initial.safetensors",
        *(f"phase-{phase + 1}.safetensors" for phase in trained),
    ]
    # Every phase of the plan was paid for, and the end costs what was planned.
    assert len(Ledger.of(state).phases) == 3
    found = campaign.verify()
    assert found.holds, found.checks
    assert found.epsilon_spent == pytest.approx(PLAN.epsilon, abs=1e-9)
    (releases,) = [check.detail for check in found.checks if check.what == "releases"]
    assert all(f"phase {phase + 1}" in releases for phase in given_up)
    card = campaign.export_model(tmp_path / "model.safetensors")
    assert card["phase"] == trained[-1] + 1
    assert card["phases_given_up"] == [phase + 1 for phase in given_up]
    assert campaign.status().phases_given_up == tuple(phase + 1 for phase in given_up)


def test_later_phases_and_selections_start_from_the_newest_recorded_model(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    made(folder)
    campaign = stuck(folder, 1)
    campaign.give_up()
    newest = campaign.state().trained[-1]
    assert newest.phase == 0
    loaded: list[str] = []
    learner = campaign.runner.model.at(campaign.state())
    assert campaign.runner.model.loaded == newest.sha256
    load = learner.load
    learner.load = lambda path: (loaded.append(path.name), load(path))[1]  # type: ignore[method-assign]
    campaign.runner.model.loaded = None
    campaign.run(go_on=True)
    # For query 2 and for phase 3; then phase 3's own model is measured.
    assert loaded[0] == "phase-1.safetensors"
    assert set(loaded) == {"phase-1.safetensors", "phase-3.safetensors"}


def test_without_any_model_there_is_none_to_export_and_the_campaign_finishes(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    made(folder)
    for phase in range(3):
        stuck(folder, phase).give_up()
    assert reopened(folder).run(go_on=True).stage == "finished"
    campaign = reopened(folder)
    assert campaign.state().given_up == (0, 1, 2)
    assert campaign.verify().holds
    with pytest.raises(MissingData, match=r"no model to export.*every phase so far was given up"):
        campaign.export_model(tmp_path / "model.safetensors")
    assert not (tmp_path / "model.safetensors").exists()
    write_report(folder, tmp_path / "report.html")


def test_settings_of_training_change_and_the_new_file_is_the_recorded_one(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    made(folder, training={"learning_rate": 3.0})
    campaign = stuck(folder, 0)
    before = (folder / CONFIG).read_bytes()
    old_hash = campaign.state().settings
    campaign.give_up(settings=["training.learning_rate=0.01", "training.optimizer=sgd"])
    changed = read_config(folder / CONFIG)
    assert (changed.training.learning_rate, changed.training.optimizer) == (0.01, "sgd")
    assert campaign.config == changed
    # This very object goes on with them, and so does one that is opened later.
    assert campaign.parts.learner(campaign.parts.inputs).settings.learning_rate == 0.01
    again = reopened(folder)
    assert again.parts.learner(again.parts.inputs).settings.learning_rate == 0.01
    assert campaign.state().settings != old_hash
    assert campaign.verify().holds
    # Exactly that file: neither the old one nor another.
    good = (folder / CONFIG).read_bytes()
    for content in (before, good.replace(b"learning_rate: 0.01", b"learning_rate: 0.02")):
        (folder / CONFIG).write_bytes(content)
        assert not Campaign(folder).verify().holds
        with pytest.raises(DamagedCampaign, match="differs from the configuration"):
            reopened(folder)
    (folder / CONFIG).write_bytes(good)
    assert campaign.run(go_on=True).stage == "finished"


@pytest.mark.parametrize(
    "setting",
    [
        "plan.target_epsilon=100",
        "seed=7",
        "not_private=true",
        "model.name=resnet9",
        "training=null",
        "trainings.learning_rate=1",
        "training.pixel_mean=0.1",
        "training.learning_rate=-1",
        "training.learning_rate=1.0e+38",
        "training.precision=float8",
        "training.optimizer=magic",
        "training.engine=magic",
        "training.nonsense=1",
        "training.learning_rate",
    ],
)
def test_other_settings_and_useless_ones_are_refused_and_nothing_changes(tmp_path: Path, setting: str) -> None:
    folder = tmp_path / "c"
    made(folder)
    campaign = stuck(folder, 0)
    before = {
        path: digest(path)
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("writer.lock", "writer.json")
    }
    with pytest.raises(InvalidArgument):
        Campaign(folder).give_up(settings=[setting])
    assert {path: digest(path) for path in before} == before
    assert campaign.state().open_charge is not None


def test_nothing_is_given_up_where_no_phase_is_open(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    campaign = made(folder)
    with pytest.raises(NothingToGiveUp, match=r"No training phase is under way.*Nothing was changed"):
        campaign.give_up()
    campaign.run(go_on=True)
    with pytest.raises(NothingToGiveUp, match="nothing to give up"):
        campaign.give_up()
    assert not any(fact.kind == GivenUp.kind for fact in facts(folder))


def test_a_selection_is_not_given_up_but_run_again(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    made(folder, plan=linear_plan(selection="cut"))
    campaign = reopened(folder)

    def failing(*args: Any, **options: Any) -> Any:
        raise Broken

    campaign.runner.model.at(campaign.state()).logits = failing  # type: ignore[method-assign]
    with pytest.raises(Broken):
        campaign.run(go_on=True)
    with pytest.raises(NothingToGiveUp, match=r"is a selection.*Run it again"):
        Campaign(folder).give_up()
    assert reopened(folder).run(go_on=True).stage == "finished"


def facts(folder: Path) -> list[Any]:
    return [entry.fact for entry in Campaign(folder).reader.recorded]


def test_what_the_phase_had_written_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    made(folder)
    campaign = stuck(folder, 1)
    kept = (folder / "checkpoints/phase-1.safetensors").read_bytes()
    for name in (".phase-2.safetensors.draft", "phase-2.safetensors"):
        (folder / "checkpoints" / name).write_bytes(b"half a model")
    campaign.give_up()
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "initial.safetensors",
        "phase-1.safetensors",
    ]
    assert (folder / "checkpoints/phase-1.safetensors").read_bytes() == kept
    assert campaign.verify().holds


def test_a_given_up_phase_is_not_trained_or_given_up_again(tmp_path: Path) -> None:
    """By facts that someone adds without the commands: the fold refuses them."""
    folder = tmp_path / "c"
    made(folder)
    campaign = stuck(folder, 0)
    campaign.give_up()
    state = campaign.state()
    charge = next(number for number, fact in state.charges if isinstance(fact, ChargedTraining))
    again = GivenUp(charge=charge, phase=0, reason="", settings=state.settings)
    names = {"file": "checkpoints/phase-1.safetensors", "sha256": "", "export_sha256": "", "engine": ""}
    model = Trained(charge=charge, phase=0, seconds=0, **names)
    for fact in (again, model, ChargedTraining(phase=0, **_numbers(0))):
        with writing(campaign.reader) as writer, pytest.raises(DamagedCampaign):
            writer.add(fact)


def test_reports_put_each_measurement_to_its_own_phase(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    made(folder)
    stuck(folder, 1).give_up()
    reopened(folder).run(go_on=True)
    data = report_data(folder)
    assert [each["phase"] for each in data["metrics"]] == [1, 3]
    assert run_of(folder).labels == (data["labels_by_phase"][0], data["labels_by_phase"][2])
    page = write_report(folder, tmp_path / "report.html").read_text()
    assert "Phase 2 was given up." in page
    assert f"<td>{data['labels_by_phase'][2]}</td>" in page.split("<th>labels planned</th>", 1)[1]


def test_the_certificate_counts_the_given_up_phase(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    made(folder)
    stuck(folder, 1).give_up()
    reopened(folder).run(go_on=True)
    document = certificate_of(folder)
    assert document["complete"]
    assert len(document["charges"]["phases"]) == 3
    assert verify_certificate(json.loads(json.dumps(document))) == Campaign(folder).verify().epsilon_spent


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_status_card_verify_report_and_certificate_give_one_number(tmp_path: Path, accountant: str) -> None:
    folder = tmp_path / "c"
    plan = linear_plan(accountant=accountant)
    campaign = Campaign.create(folder, plan=plan, pool=linear_pool(), model=linear_model(), oracle="files")
    seen: list[float] = []
    for stage in range(4):
        status = campaign.run(go_on=True)
        found = campaign.verify()
        assert found.holds
        numbers = {
            "status": status.epsilon_spent,
            "verify": found.epsilon_spent,
            "report": report_data(folder)["verification"]["epsilon_spent"],
            "report's status": report_data(folder)["status"]["epsilon_spent"],
        }
        if campaign.state().trained:
            numbers["card"] = campaign.export_model(tmp_path / f"{stage}.safetensors")["epsilon"]
        assert len(set(numbers.values())) == 1, numbers
        # A certificate states six digits, rounded up.
        assert certificate_of(folder)["epsilon"] == rounded_up(status.epsilon_spent, 6)
        seen.append(status.epsilon_spent)
        if status.is_waiting:
            state = campaign.state()
            names = state.missing(len(state.groups) - 1)
            (tmp_path / "l.csv").write_text("id,label\n" + "".join(f"{name},yes\n" for name in names))
            campaign.import_labels(tmp_path / "l.csv", linear_pool())
    assert campaign.status().stage == "finished"
    # Nothing before the first phase, then more each time, and at the end what was planned.
    assert seen[0] == 0
    assert seen == sorted(set(seen))
    assert seen[-1] == pytest.approx(plan.epsilon, abs=1e-9)
    assert seen[1] < plan.epsilon - 0.1
