"""Datasets by name."""

from pathlib import Path

import pytest

from dpal.data import DATASETS, load_dataset
from dpal.errors import InvalidArgument, MissingData


def test_unknown_names_and_parts_say_what_there_is() -> None:
    with pytest.raises(InvalidArgument, match="cifar10"):
        load_dataset("cifar11")
    with pytest.raises(InvalidArgument, match="train, test"):
        load_dataset("digits", part="validation")


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "digits"])
def test_offline_it_says_which_files_to_put_where(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingData) as caught:
        load_dataset(name, folder=tmp_path / "empty")
    message = str(caught.value)
    assert str(tmp_path / "empty") in message
    for file in DATASETS[name].files("train", (DATASETS[name].sizes or (0,))[0]):
        assert file.address in message
        assert file.name in message
    assert not (tmp_path / "empty").exists()
