"""Campaigns that tests of faults start from."""

import shutil
from pathlib import Path

import pytest
from small_campaigns import create, reopened


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that is created and not run."""
    folder = tmp_path_factory.mktemp("planned") / "campaign"
    create(folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(planned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same campaign, run to its end in one go."""
    folder = tmp_path_factory.mktemp("undisturbed") / "campaign"
    shutil.copytree(planned, folder)
    assert reopened(folder).run().stage == "finished"
    return folder
