"""The committed page of results is what the committed results give."""

from pathlib import Path
from typing import Any

import numpy as np

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.results import Results
from dpal.experiments.results_page import page_of
from dpal.experiments.runs import Run
from dpal.experiments.scales import FULL

ROOT = Path(__file__).parents[3]
RESULTS = Results(ROOT / "experiments" / "results")


def test_the_page_is_up_to_date() -> None:
    """If not: dpal experiments table all --markdown docs/results.md."""
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == page_of(RESULTS)


def test_every_committed_result_belongs_to_a_run() -> None:
    rows = {row.full_name: row for experiment in EXPERIMENTS.values() for row in experiment.rows}
    files = sorted((RESULTS.folder / FULL).glob("*.json"))
    assert files
    for file in files:
        name, _, seed = file.stem.rpartition(".seed-")
        assert RESULTS.read(Run(row=rows[name], seed=int(seed))) is not None


def test_what_the_page_says_about_the_scale_of_laplace_noise() -> None:
    """The right scale gives what was measured, here and in the paper; the printed one would give more."""
    row = next(row for row in EXPERIMENTS["selection-accuracy"].rows if row.name == "entropy-laplace")
    document = RESULTS.read(Run(row=row, seed=1))
    assert document is not None
    said = {1: (28.3, None), 2: (12.1, 14.5), 3: (4.9, 7.0), 4: (5.0, 9.0)}
    for number, selection in enumerate(document["selections"], start=1):
        right, printed = said[number]
        assert abs(_taken_by_laplace(selection, 0.5) - right) < 0.8
        if printed is not None:
            assert abs(_taken_by_laplace(selection, 0.5 * number) - printed) < 0.8


def _taken_by_laplace(selection: dict[str, Any], epsilon: float, draws: int = 20) -> float:
    """The percentage of the true top that is taken, from the histogram of scores alone."""
    rng = np.random.default_rng(0)
    edges, counts = np.array(selection["histogram"]["edges"]), np.array(selection["histogram"]["pool"])
    scores = np.repeat(edges[:-1], counts) + rng.random(counts.sum()) * np.repeat(np.diff(edges), counts)
    top = np.argsort(-scores)[: selection["wanted"]]
    found = [
        len(np.intersect1d(top, np.argsort(-(scores + rng.laplace(0, 1 / epsilon, len(scores))))[: len(top)]))
        for _ in range(draws)
    ]
    return 100 * float(np.mean(found)) / len(top)
