"""The paper's numbers."""

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.paper_numbers import PAPER

ROWS = {row.full_name: row for experiment in EXPERIMENTS.values() for row in experiment.rows}


def test_every_number_of_the_paper_has_a_row() -> None:
    assert set(PAPER) <= set(ROWS)
