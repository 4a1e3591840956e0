"""The demonstration: two whole campaigns on real digits, one with random and one with private threshold selection."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.errors import InvalidArgument
from dpal.imports import optional
from dpal.reports.campaign_data import report_data
from dpal.reports.campaign_plots import learning_figure
from dpal.reports.campaign_report import write_report

CAMPAIGNS = {"random": {"selection": "random"}, "threshold": {"selection": "threshold"}}
_MARK = "dpal-demo.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRow:
    """How one campaign ended."""

    name: str
    folder: Path
    report: Path
    labels: int
    accuracy: float
    epsilon_spent: float
    holds: bool


def run_demo(folder: Path, *, tell: Callable[[str], None]) -> tuple[list[DemoRow], Path]:
    """Both campaigns from start to report. An earlier demonstration in the folder is replaced."""
    optional("torch", extra="train")  # before anything is cleared
    _clear(folder)
    reports: dict[str, dict[str, Any]] = {}
    rows: list[DemoRow] = []
    for name, plan in CAMPAIGNS.items():
        tell(f"campaign {name}")
        config = checked_config(digits_document(plan))
        campaign_folder = folder / name
        campaign = Campaign.from_config(campaign_folder, config, tell=lambda words: tell(f"  {words}"))
        status = campaign.run()
        report = write_report(
            campaign_folder,
            campaign_folder / "reports" / "report.html",
            baseline=rows[0].folder if rows else None,
        )
        reports[name] = report_data(campaign_folder)
        verification = campaign.verify()
        rows.append(
            DemoRow(
                name=name,
                folder=campaign_folder,
                report=report,
                labels=status.internal.labelled,
                accuracy=status.metrics[-1]["accuracy"],
                epsilon_spent=verification.epsilon_spent,
                holds=verification.holds,
            )
        )
    picture = folder / "learning.png"
    learning_figure(reports, "accuracy").savefig(picture)
    return rows, picture


def digits_document(plan: dict[str, Any]) -> dict[str, Any]:
    """A whole campaign on scikit-learn's digits, small enough to take seconds."""
    return {
        "data": {"source": "digits"},
        "evaluation": {"source": "digits", "options": {"part": "test"}, "is_public": True},
        "plan": {
            "target_epsilon": 8.0,
            "target_delta": 1e-4,
            "initial_size": 200,
            "query_sizes": [150, 100, 50],
            "batch_size": 64,
            "epochs": 15,
            **plan,
        },
        "model": {"name": "small-cnn"},
        "training": {"learning_rate": 2e-3},
        "acquisition": {"name": "entropy"},
        "oracle": "simulated",
    }


def _clear(folder: Path) -> None:
    """Clear the folder, but only if it is empty or an earlier demonstration made it."""
    if folder.exists():
        if not folder.is_dir() or (any(folder.iterdir()) and not (folder / _MARK).is_file()):
            raise InvalidArgument(
                "the folder of the demonstration", str(folder), "new, empty, or made by an earlier demonstration"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / _MARK).write_text("Made by dpal demo, which replaces this folder when it is run again.\n")
