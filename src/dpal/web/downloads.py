"""Files that are made when they are asked for: reports, the certificate, the model and the learning curve."""

import subprocess
import sys
import zipfile
from pathlib import Path
from threading import Lock
from typing import Any

from dpal.campaign.reader import Reader
from dpal.errors import DpalError, NotForYou

REPORT, PUBLIC_REPORT, CERTIFICATE, MODEL = "report.html", "public-report.html", "certificate.zip", "model.zip"
# matplotlib keeps its settings in one place for the whole process.
DRAWING = Lock()
_EXPORT_SECONDS = 600


def written(folder: Path, kind: str, place: Path) -> Path:
    """The file of this kind, written to a place that is empty."""
    match kind:
        case "report.html" | "public-report.html":
            from dpal.reports.campaign_report import write_report

            with DRAWING:
                return write_report(folder, place / kind, internal=kind == REPORT)
        case "certificate.zip":
            from dpal.reports.certificate_files import json_file_of, write_certificate

            pdf = place / "certificate.pdf"
            with DRAWING:
                write_certificate(folder, pdf)
            return _packed(place / kind, [pdf, json_file_of(pdf)])
        case "model.zip":
            model = place / "model.safetensors"
            # In a process of its own: it loads torch and the data, which the server does without.
            command = [sys.executable, "-m", "dpal", "export-model", str(folder), "--to", str(model)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_EXPORT_SECONDS, check=False)  # noqa: S603
            if done.returncode != 0:
                raise DpalError(done.stderr.strip().removeprefix("error: "))
            # Its cards, for programs and for people, are next to it.
            return _packed(place / kind, sorted(place.glob(f"{model.name}*")))
        case _:
            raise NotForYou


def _packed(archive: Path, files: list[Path]) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for file in files:
            target.write(file, file.name)
    return archive


def curve_svg(folder: Path, *, baseline: Path | None) -> str | None:
    """The learning curve on the held-out set, with what a model has to beat; None before the first measurement."""
    from dpal.reports.campaign_plots import learning_figure
    from dpal.reports.figures import as_svg

    data = _curve_data(folder)
    if not data["metrics"]:
        return None
    curves = {folder.name: data}
    if baseline is not None:
        other = _curve_data(baseline)
        if other["metrics"]:
            curves[f"{baseline.name} (baseline)"] = other
    metric = next(name for name in data["metrics"][0] if name not in ("phase", "records"))
    with DRAWING:
        return as_svg(learning_figure(curves, metric))


def _curve_data(folder: Path) -> dict[str, Any]:
    from dpal.reports.campaign_data import curve_data

    reader = Reader(folder)
    return curve_data(reader.state(), reader.plan)
