"""A real MLflow store in SQLite, read back: exactly what the document names, nothing private, and no campaign twice."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mlflow_reader import documented, numbers_among, private_names, runs_of, texts_of
from small_campaigns import create, linear_campaign, linear_plan

from dpal.campaign.campaign import Campaign
from dpal.data import Pool, from_arrays
from dpal.errors import DpalError, InvalidArgument
from dpal.reports import mlflow_store
from dpal.reports.certificate import verify_certificate
from dpal.reports.certificate_files import read_certificate
from dpal.reports.mlflow_store import Place, shown, write_to_mlflow
from dpal.reports.signature import new_keys
from dpal.training.engines.engine import ClippingEngine
from dpal.training.engines.engine_checks import losses_of

pytest.importorskip("mlflow")


def several_labels(start: int, count: int) -> Pool:
    values = np.random.default_rng(start).normal(size=(count, 4)).astype(np.float32)
    labels = (values[:, :2] > 0).astype(np.float32)
    ids = [f"{start}-{number}" for number in range(count)]
    return from_arrays(values, classes=["edema", "nodule"], labels=labels, ids=ids, multi_label=True)


@pytest.fixture(scope="module")
def private_numbers() -> set[float]:
    return set()


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, private_numbers: set[float]) -> Campaign:
    """A finished campaign whose losses and gradient norms were watched while it was trained."""
    clipped = ClippingEngine.clipped_sum

    def watched(self: ClippingEngine, batch: Any, targets: Any, present: Any = None, weights: Any = None) -> Any:
        with torch.no_grad():
            losses, _ = losses_of(self.model, self.loss, batch, targets)
        result = clipped(self, batch, targets, present, weights)
        norm = torch.stack([gradient.square().sum() for gradient in result.gradients.values()]).sum().sqrt()
        private_numbers.update((float(losses.mean()), float(losses.sum()), float(losses.max()), float(norm)))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClippingEngine, "clipped_sum", watched)
        made = create(tmp_path_factory.mktemp("mlflow") / "clinic", seed=None)
        made.run(go_on=True)
    assert len(private_numbers) > 20
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, campaign: Campaign) -> Path:
    """With everything that can be written: signed, with ONNX, one class per record and several labels."""
    folder = tmp_path_factory.mktemp("store")
    new_keys(folder / "keys")
    write_to_mlflow(campaign, str(folder / "tracking"), sign_with=folder / "keys/private.pem", onnx=True)
    multi = linear_campaign(
        folder / "several",
        pool=several_labels(1, 24),
        evaluation=several_labels(2, 60),
        evaluation_is_public=True,
    )
    multi.run(go_on=True)
    write_to_mlflow(multi, f"sqlite:///{folder}/tracking/mlflow.db")
    return folder / "tracking/mlflow.db"


def undocumented(store: Path) -> set[str]:
    """Names that are written and not documented, or documented and never written."""
    written = [run.names() for run in runs_of(store)]
    return {
        f"{title}: {name}"
        for title, names in documented().items()
        for name in names ^ set().union(*(run[title] for run in written))
    }


def test_exactly_what_the_document_names_is_written(store: Path) -> None:
    assert undocumented(store) == set()
    assert {name for run in runs_of(store) for name, _ in run.metrics} == {
        "epsilon_spent", "accuracy", "balanced_accuracy", "auc",
    }  # fmt: skip


def test_a_run_says_what_the_campaign_says(store: Path, campaign: Campaign, tmp_path: Path) -> None:
    first, second = runs_of(store)
    assert (first.status, second.status) == ("FINISHED", "FINISHED")
    state, plan = campaign.state(), campaign.plan
    phases = range(1, len(plan.phases) + 1)
    assert [first.metrics["epsilon_spent", phase] for phase in phases] == sorted(
        first.metrics["epsilon_spent", phase] for phase in phases
    )
    assert first.metrics["epsilon_spent", len(phases)] >= campaign.verify().epsilon_spent
    for fact in state.evaluated:
        for name in ("accuracy", "balanced_accuracy"):
            assert first.metrics[name, fact.phase + 1] == fact.metrics[name]
    assert first.tags["mlflow.runName"] == first.tags["dpal.campaign"] == "clinic"
    assert first.tags["dpal.model_sha256"] == state.trained[-1].export_sha256
    (tmp_path / "certificate.json").write_bytes(first.artifacts["certificate.json"])
    certificate = read_certificate(tmp_path / "certificate.json")
    verify_certificate(certificate)
    assert certificate["campaign"] == "clinic"
    assert "dpal.signed_with" in first.tags and "dpal.signed_with" not in second.tags


def test_nothing_private_and_nothing_of_the_machine_is_written(
    store: Path, campaign: Campaign, private_numbers: set[float]
) -> None:
    texts = texts_of(store)
    assert numbers_among(texts, private_numbers) == set()
    documents = [
        content.decode() for run in runs_of(store) for name, content in run.artifacts.items() if name.endswith(".json")
    ]
    assert len(documents) == 4 and private_names(documents) == set()
    machine = (str(campaign.folder.parent), tempfile.gettempdir(), str(Path(mlflow_store.__file__).parents[3]))
    for text in texts:
        # Except for where MLflow itself keeps the files.
        assert text.startswith(str(store.parent)) or not any(place in text for place in machine), text
    with closing(sqlite3.connect(store)) as opened:
        assert opened.execute("SELECT DISTINCT user_id, source_name FROM runs").fetchall() == [("unknown", "")]


def test_planted_leaks_are_found(store: Path, campaign: Campaign, private_numbers: set[float], tmp_path: Path) -> None:
    """A twin that also writes a loss and a duration."""
    facts, text = mlflow_store.tracked_facts, mlflow_store.certificate_text
    loss = next(iter(private_numbers))

    def leaking(*words: Any) -> Any:
        found = facts(*words)
        return replace(found, metrics={**found.metrics, "train_loss": {1: loss}})

    def leaking_text(document: Any) -> str:
        return text({**document, "seconds": campaign.state().trained[0].seconds})

    shutil.copytree(store.parent, tmp_path / "twin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlflow_store, "tracked_facts", leaking)
        patch.setattr(mlflow_store, "certificate_text", leaking_text)
        patch.setattr(mlflow_store, "CERTIFICATE", "log.json")
        write_to_mlflow(campaign, str(tmp_path / "twin"), experiment="twin")
    twin = tmp_path / "twin/mlflow.db"
    assert undocumented(twin) == {"Metrics: train_loss", "Artifacts: log.json"}
    assert numbers_among(texts_of(twin), private_numbers) == {loss}
    assert private_names([runs_of(twin)[-1].artifacts["log.json"].decode()]) == {"seconds"}


def test_a_campaign_is_not_there_twice(store: Path, campaign: Campaign, tmp_path: Path) -> None:
    shutil.copytree(store.parent, tmp_path / "again")
    file, to = tmp_path / "again/mlflow.db", str(tmp_path / "again")
    with pytest.raises(DpalError, match=r"clinic is there already: run \w+ of .*--force\. Nothing was written"):
        write_to_mlflow(campaign, to)
    assert len(runs_of(file)) == 2
    written = write_to_mlflow(campaign, to, force=True)
    assert [run.is_deleted for run in runs_of(file)] == [True, False, False]
    assert runs_of(file)[-1].number == written.run
    # In another experiment it is another run.
    write_to_mlflow(campaign, to, experiment="another")
    assert [run.is_deleted for run in runs_of(file)] == [True, False, False, False]


def test_what_a_broken_connection_left_is_replaced(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store.parent, tmp_path / "broken")
    file, to = tmp_path / "broken/mlflow.db", str(tmp_path / "broken")
    campaign = linear_campaign(tmp_path / "late")
    campaign.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlflow.MlflowClient.log_artifact", failing)
        with pytest.raises(DpalError, match="did not take it"):
            write_to_mlflow(campaign, to)
    assert runs_of(file)[-1].status == "RUNNING"
    written = write_to_mlflow(campaign, to)
    assert [run.is_deleted for run in runs_of(file)] == [False, False, True, False]
    assert (runs_of(file)[-1].number, runs_of(file)[-1].status) == (written.run, "FINISHED")


def failing(*words: object) -> None:
    from mlflow.exceptions import MlflowException

    raise MlflowException("the connection is gone")


def test_a_campaign_without_a_model(store: Path, tmp_path: Path) -> None:
    """Every phase was given up: the certificate is written, and no model."""
    shutil.copytree(store.parent, tmp_path / "none")
    plan = linear_plan(planner="no-al")
    campaign = linear_campaign(tmp_path / "c", plan=plan)
    learner = campaign.runner.model.at(campaign.state())

    def stuck(*words: object, **options: object) -> None:
        raise KeyboardInterrupt

    learner.train = stuck
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    campaign.give_up()
    campaign.run()
    written = write_to_mlflow(campaign, str(tmp_path / "none"))
    assert written.artifacts == ("certificate.json",) and "dpal.model_sha256" not in written.facts.tags
    assert set(written.facts.metrics) == {"epsilon_spent"}


@pytest.mark.parametrize("to", ["", "ftp://a/b", "file:///a", "sqlite://a.db", "sqlite:///nowhere/at/all.db"])
def test_other_places_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match="an MLflow server"):
        Place.of(to)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_shown(campaign: Campaign) -> None:
    address = "http://me:secret@127.0.0.1:9/x"
    assert shown(address) == "http://…@127.0.0.1:9/x" and shown("sqlite:///a@b.db") == "sqlite:///a@b.db"
    with pytest.raises(DpalError, match="did not take it") as caught:
        write_to_mlflow(campaign, address)
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").touch()
    with pytest.raises(InvalidArgument, match="an MLflow server"):
        Place.of(str(tmp_path / "c.yaml"))
