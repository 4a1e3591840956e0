"""The demonstration: whole campaigns on real digits, labelling at random against the private cut, several of each."""

import math
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpal.campaign.arranging import add_person
from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.campaign.guidelines import write_guidelines
from dpal.campaign.reader import Reader
from dpal.errors import InvalidArgument
from dpal.imports import optional
from dpal.reports.campaign_report import write_report
from dpal.reports.final_plot import final_figure

# The same labels in all, the same steps and the same promise: only who is labelled differs.
CAMPAIGNS: dict[str, dict[str, Any]] = {"random": {"planner": "no-al", "selection": "random"}, "cut": {}}
REPEATS = 4
# For people who label by hand: few labels, in three rounds.
_FEW: dict[str, Any] = {"initial_size": 40, "query_sizes": [20, 20], "batch_size": 20, "epochs": 20}
YOURS, RANDOM_ONES = "yours", "random"
_BY_HAND: dict[str, dict[str, Any]] = {
    YOURS: {"planner": "step-amplification", "selection": "cut"},
    RANDOM_ONES: {"planner": "step-amplification", "selection": "random"},
}
_GUIDE = """Which digit is it? These are 8 × 8 pixels of people's handwriting.

Press the digit's key, or tap it. If it could be two digits, choose "cannot tell".

You label 40 digits first. Then a model is trained privately and asks about those that would help it most, twice."""
_MARK = "dpal-demo.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRow:
    """How the campaigns of one kind ended, and the first of them."""

    name: str
    folder: Path
    report: Path
    accuracies: tuple[float, ...]
    # Of the campaign that spent the most.
    epsilon_spent: float
    holds: bool

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    folder: Path
    accuracy: float
    epsilon_spent: float
    holds: bool


def run_demo(folder: Path, *, tell: Callable[[str], None], repeats: int = REPEATS) -> tuple[list[DemoRow], Path]:
    """All campaigns from start to report. An earlier demonstration in the folder is replaced."""
    optional("torch", extra="train")  # before anything is cleared
    _clear(folder)
    ended: dict[str, list[_Ended]] = {name: [] for name in CAMPAIGNS}
    for number in range(1, repeats + 1):
        for name, plan in CAMPAIGNS.items():
            ended[name].append(_campaign(folder / f"{name}-{number}", plan))
            tell(f"campaign {name} {number} of {repeats}: accuracy {ended[name][-1].accuracy:.1%}")
    first = ended["random"][0].folder
    rows = [
        DemoRow(
            name=name,
            folder=campaigns[0].folder,
            report=write_report(
                campaigns[0].folder,
                campaigns[0].folder / "reports" / "report.html",
                baseline=None if name == "random" else first,
            ),
            accuracies=tuple(campaign.accuracy for campaign in campaigns),
            epsilon_spent=max(campaign.epsilon_spent for campaign in campaigns),
            holds=all(campaign.holds for campaign in campaigns),
        )
        for name, campaigns in ended.items()
    ]
    picture = folder / "accuracy.png"
    final_figure({row.name: row.accuracies for row in rows}, "accuracy on the held-out set").savefig(picture)
    return rows, picture


def labelling_campaigns(folder: Path) -> dict[str, Path]:
    """Two small campaigns on digits: one that the newcomer labels, and one of the same size with random labels."""
    optional("torch", extra="train")
    _clear(folder)
    made = {name: folder / name for name in _BY_HAND}
    for name, place in made.items():
        document = digits_document(_FEW | _BY_HAND[name])
        document |= {"training": {"learning_rate": 2e-2, "average": 0.95}}
        if name == YOURS:
            document["oracle"] = "files"
        Campaign.from_config(place, checked_config(document))
    reader = Reader(made[YOURS])
    add_person(reader, "You")
    write_guidelines(made[YOURS], _GUIDE)
    return made


def difference_in_words(rows: Sequence[DemoRow]) -> str:
    """The difference of the cut to random labels with its standard error, and whether it means anything."""
    random, cut = rows
    difference = 100 * (cut.mean - random.mean)
    squares = [statistics.variance(row.accuracies) / len(row.accuracies) for row in rows if len(row.accuracies) > 1]
    if len(squares) < len(rows):
        return f"The cut is at {difference:+.1f} points against random labels: one run each says nothing."
    error = 100 * math.sqrt(math.fsum(squares))
    said = f"The cut is at {difference:+.1f} ± {error:.1f} points against random labels"
    if abs(difference) <= 2 * error:
        return f"{said}: on these easy digits, no difference that {len(cut.accuracies)} runs can show."
    return f"{said}: more than chance, on these digits. Other data may differ."


def _campaign(folder: Path, plan: dict[str, Any]) -> _Ended:
    campaign = Campaign.from_config(folder, checked_config(digits_document(plan)))
    # A demonstration shows what comes out, good or bad.
    status = campaign.run(go_on=True)
    verification = campaign.verify()
    return _Ended(
        folder=folder,
        accuracy=status.metrics[-1]["accuracy"],
        epsilon_spent=verification.epsilon_spent,
        holds=verification.holds,
    )


def digits_document(plan: dict[str, Any]) -> dict[str, Any]:
    """A whole campaign on scikit-learn's digits, small enough to take seconds."""
    return {
        "data": {"source": "digits"},
        "evaluation": {"source": "digits", "options": {"part": "test"}, "is_public": True},
        "plan": {
            "target_epsilon": 8.0,
            "target_delta": 1e-4,
            "initial_size": 120,
            "query_sizes": [180],
            "batch_size": 64,
            "epochs": 20,
            **plan,
        },
        "model": {"name": "small-cnn"},
        "training": {"learning_rate": 8e-3, "average": 0.98},
        "acquisition": {"name": "minimum-margin"},
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
