"""Draws the pictures of README and docs from real runs: the demonstration, a report, a certificate, a comparison."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.experiments.demo import digits_document, run_demo
from dpal.reports.certificate import certificate_of
from dpal.reports.certificate_pdf import write_pdf
from dpal.reports.comparison import run_of, summaries
from dpal.reports.comparison_report import curves
from dpal.reports.histogram_plot import plot_histograms

IMAGES = Path(__file__).parent / "images"
SEEDS = (1, 2, 3)
console = Console()


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows, picture = run_demo(
            folder / "demo", tell=lambda words: console.print(words, highlight=False)
        )
        for row in rows:
            console.print(row)
        shutil.copy(picture, IMAGES / "demo.png")
        write_pdf(
            certificate_of(rows[-1].folder), IMAGES / "certificate.png", kind="png"
        )
        screenshot(rows[-1].report, IMAGES / "report.png")
        simulations(folder / "simulations")


def simulations(folder: Path) -> None:
    """Seeded runs, in which nothing is private: for comparisons and for a look at scores."""
    folder.mkdir()
    runs = []
    for seed in SEEDS:
        for selection in ("random", "threshold", "none"):
            place = folder / f"{selection}-{seed}"
            plan = {
                "selection": selection,
                "accountant": "rdp",
                "planner": "step-amplification",
                "initial_size": 200,
                "query_sizes": [150, 100, 50],
                "epochs": 15,
            }
            document = digits_document(plan) | {"acquisition": {"name": "entropy"}}
            campaign = Campaign.from_config(
                place, checked_config(document | {"seed": seed, "not_private": True})
            )
            campaign.run()
            console.print(f"{place.name} done")
            names = {
                "none": "entropy, not private",
                "threshold": "entropy by threshold sampling",
                "random": "random",
            }
            runs.append(run_of(place, names[selection]))
            if (selection, seed) == ("threshold", SEEDS[0]):
                queries = [campaign.simulated_scores(group) for group in (1, 2, 3)]
                plot_histograms(
                    queries, IMAGES / "histogram.png", acquisition="entropy"
                )
    curves(summaries(runs, "accuracy"), "accuracy").savefig(IMAGES / "comparison.png")


def screenshot(page: Path, to: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        console.print("no Chromium: the picture of the report stays as it was")
        return
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=900,1500",
    ]
    command = [browser, *options, f"--screenshot={to}", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603 (our own page)


if __name__ == "__main__":
    main()
