"""The digits inside scikit-learn."""

import numpy as np

from dpal.data import load_dataset


def test_named_datasets_know_their_form() -> None:
    assert load_dataset("digits").records.form[""].shape == (1, 8, 8)


def test_digits_are_embedded_and_split_by_id() -> None:
    train, test = load_dataset("digits"), load_dataset("digits", part="test")
    assert (len(train), len(test)) == (1437, 360)
    assert not set(train.ids) & set(test.ids)
    read = train.records.read(np.arange(1437))
    assert read.shape == (1437, 1, 8, 8)
    assert (read.min(), read.max()) == (0, 255)
