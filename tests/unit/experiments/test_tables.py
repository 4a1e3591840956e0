"""Tables of results."""

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.results import Results
from dpal.experiments.tables import table_of


def test_an_empty_cell_says_what_is_missing(tmp_path) -> None:
    table = table_of(EXPERIMENTS["headline"], Results(tmp_path))
    assert table.rows[0][2] == "not run: cifar10-resnet9.random"
    assert table.rows[0][1] == "66.58 ± 0.94"
