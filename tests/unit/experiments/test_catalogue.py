"""Experiments by name."""

import pytest

from dpal.errors import InvalidArgument
from dpal.experiments.catalogue import EXPERIMENTS, experiment_named
from dpal.experiments.results import Results
from dpal.experiments.sweep import Sweep


def test_unknown_names_are_refused(tmp_path) -> None:
    with pytest.raises(InvalidArgument, match="headline"):
        experiment_named("table9")
    with pytest.raises(InvalidArgument, match="laptop"):
        Sweep(folder=tmp_path, results=Results(tmp_path), scale="tiny")
    with pytest.raises(InvalidArgument, match="entropy-laplace"):
        Sweep(folder=tmp_path, results=Results(tmp_path), scale="smallest").run(
            EXPERIMENTS["headline"], rows=["nobody"]
        )
