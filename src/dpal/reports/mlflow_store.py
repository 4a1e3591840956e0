"""Writing a finished campaign to an MLflow store: parameters, metrics, tags, the certificate and the model.

MLflow reports its own use to its makers unless it is told not to, which is done here before it is imported. Of the
machine nothing is written here: no user, no path, no source. (MLflow keeps the path of a store in a folder itself.)
"""

import logging
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpal.campaign.campaign import Campaign
from dpal.campaign.files import write_text
from dpal.errors import DpalError, InvalidArgument
from dpal.imports import optional
from dpal.reports.certificate import certificate_of
from dpal.reports.signature import private_key, signed
from dpal.reports.tracked_facts import (
    IDENTITY,
    TrackedFacts,
    certificate_text,
    identity_of,
    require_public,
    tracked_facts,
)
from dpal.training.progress import doing

DEFAULT_EXPERIMENT = "dpal"
CERTIFICATE, MODEL_FOLDER, MODEL = "certificate.json", "model", "model.safetensors"
_FINISHED, _SQLITE, _SERVERS = "FINISHED", "sqlite:///", ("http", "https")
_ALLOWED = "a folder, sqlite:///FILE.db in a folder that exists, or the address of an MLflow server (http, https)"
# It tells its makers nothing, and prints nothing in between.
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}
# Unless the environment says otherwise: MLflow itself would try a server that is not there for minutes.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a store is: its address, and the folder of a database on this machine."""

    uri: str
    folder: Path | None

    @staticmethod
    def of(text: str) -> "Place":
        """From what the operator wrote. In a folder, files have the names that `mlflow ui` looks for there."""
        scheme = text.partition(":")[0].lower() if "://" in text else ""
        if scheme in _SERVERS:
            return Place(uri=text, folder=None)
        if text.startswith(_SQLITE):
            file = Path(text.removeprefix(_SQLITE)).absolute()
        elif text.strip() and not scheme:
            if Path(text).exists() and not Path(text).is_dir():
                raise InvalidArgument("--to", text, _ALLOWED)
            Path(text).mkdir(parents=True, exist_ok=True)
            file = Path(text).absolute() / "mlflow.db"
        else:
            raise InvalidArgument("--to", shown(text), _ALLOWED)
        if file.is_dir() or not file.parent.is_dir():
            raise InvalidArgument("--to", text, _ALLOWED)
        return Place(uri=f"{_SQLITE}{file.as_posix()}", folder=file.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The run that was written."""

    run: str
    experiment: str
    facts: TrackedFacts
    artifacts: tuple[str, ...]


def write_to_mlflow(
    campaign: Campaign,
    to: str,
    *,
    experiment: str = DEFAULT_EXPERIMENT,
    sign_with: Path | None = None,
    onnx: bool = False,
    force: bool = False,
) -> Written:
    """Write the campaign, opened with its data and model, as one run. A second run of it is refused without `force`."""
    require_mlflow()
    require_public(campaign)
    key = None if sign_with is None else private_key(sign_with)
    place = Place.of(to)
    with _client(place, to) as client:
        number = _experiment(client, experiment)
        before = _runs_of(client, number, identity_of(campaign))
        whole = [run for run, status in before.items() if status == _FINISHED]
        if whole and not force:
            raise DpalError(
                f"{campaign.folder.name} is there already: run {whole[0]} of the experiment {experiment!r}. Replace it "
                "with --force. Nothing was written."
            )
        with tempfile.TemporaryDirectory() as draft:
            certificate = certificate_of(campaign.folder)
            if key is not None:
                certificate = signed(certificate, key)
            text = certificate_text(certificate)
            facts = tracked_facts(campaign, certificate, text)
            artifacts = _drafted(campaign, Path(draft), text, onnx=onnx)
            with doing("writing to MLflow"):
                run = _write(client, number, facts, Path(draft), artifacts)
        for old in before:
            # Replaced, or half written by a process that died. MLflow keeps deleted runs until `mlflow gc`.
            client.delete_run(old)
    return Written(run=run, experiment=experiment, facts=facts, artifacts=artifacts)


def require_mlflow() -> Any:
    """The package, imported so that it tells nobody about its use."""
    os.environ.update(_QUIET)
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    # A store in SQLite needs these; without them MLflow's own words would not say so.
    for name in ("sqlalchemy", "alembic"):
        optional(name, extra="mlflow")
    return optional("mlflow", extra="mlflow")


def _drafted(campaign: Campaign, folder: Path, certificate: str, *, onnx: bool) -> tuple[str, ...]:
    """The files, in the folder; their names. There is no model if every phase was given up."""
    write_text(folder / CERTIFICATE, certificate)
    if campaign.state().trained:
        (folder / MODEL_FOLDER).mkdir()
        campaign.export_model(folder / MODEL_FOLDER / MODEL, onnx=onnx)
    return tuple(sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()))


def _write(client: Any, experiment: str, facts: TrackedFacts, folder: Path, artifacts: tuple[str, ...]) -> str:
    """One run with everything in it. It counts as finished only when all is there."""
    from mlflow.entities import Metric, Param

    created = client.create_run(experiment, tags=dict(facts.tags), run_name=facts.tags["dpal.campaign"])
    run, now = str(created.info.run_id), int(created.info.start_time)
    client.log_batch(
        run,
        # When a phase ended depends on what was drawn: every number has the time of this export.
        metrics=[Metric(name, value, now, step) for name, by in facts.metrics.items() for step, value in by.items()],
        params=[Param(name, value) for name, value in facts.parameters.items()],
    )
    for name in artifacts:
        client.log_artifact(run, str(folder / name), name.rpartition("/")[0] or None)
    client.set_terminated(run, status=_FINISHED)
    return run


def _experiment(client: Any, name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is None:
        return str(client.create_experiment(name))
    if found.lifecycle_stage != "active":
        raise DpalError(f"The experiment {name!r} is deleted there: restore it, or give another --experiment.")
    return str(found.experiment_id)


def _runs_of(client: Any, experiment: str, identity: str) -> Mapping[str, str]:
    """The campaign's runs, and what became of them."""
    runs = client.search_runs([experiment], filter_string=f"tags.`{IDENTITY}` = '{identity}'")
    return {str(run.info.run_id): str(run.info.status) for run in runs}


@contextmanager
def _client(place: Place, to: str) -> Generator[Any]:
    """A client for the store. What MLflow, or a database, complains about is one sentence without passwords."""
    mlflow, sqlalchemy = require_mlflow(), optional("sqlalchemy", extra="mlflow")
    known: tuple[type[Exception], ...] = (mlflow.exceptions.MlflowException, sqlalchemy.exc.SQLAlchemyError)
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        # Where MLflow puts an experiment's files follows from the folder that it is opened in.
        with doing("opening the MLflow store"), chdir(place.folder or "."):
            client = mlflow.MlflowClient(tracking_uri=place.uri)
        yield client
    except known as error:
        # With `from`, a password in the address would be in what is printed of the cause.
        raise DpalError(f"MLflow at {shown(to)} did not take it ({type(error).__name__}): {_said(error, to)}") from None


def shown(address: str) -> str:
    """An address without a user's name and password."""
    return address.replace(login, "…") if (login := _login(address)) else address


def _said(error: Exception, address: str) -> str:
    """The first line of an error, without name and password."""
    first = str(error).strip().partition("\n")[0]
    return (first.replace(login, "…") if (login := _login(address)) else first)[:300]


def _login(address: str) -> str:
    return address.partition("://")[2].partition("/")[0].rpartition("@")[0]
