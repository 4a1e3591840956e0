from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpal.data import Split, split_by_id
from dpal.errors import BadData, InvalidArgument, MissingData

IDS = [f"r{number}" for number in range(200)]


def test_the_order_of_the_records_does_not_matter() -> None:
    sizes = {"test": 50, "train": -1}
    assert split_by_id(IDS, sizes, salt="s") == split_by_id(IDS[::-1], sizes, salt="s")
    assert split_by_id(IDS, sizes, salt="s") != split_by_id(IDS, sizes, salt="t")


def test_a_split_is_the_same_on_every_machine() -> None:
    """Pinned: a change of the hash would move records between parts of running campaigns."""
    assert split_by_id(IDS, {"test": 4}, salt="s").parts["test"] == ("r117", "r19", "r29", "r115")


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.01, 0.3))
def test_parts_have_their_sizes_and_nothing_in_common(first: int, second: int, share: float) -> None:
    parts = split_by_id(IDS, {"a": first, "b": second, "c": share, "d": -1}, salt="s").parts
    assert [len(parts["a"]), len(parts["b"]), len(parts["c"])] == [first, second, int(share * 200)]
    assert sorted(name for part in parts.values() for name in part) == sorted(IDS)


def test_it_is_written_down_and_read_again(tmp_path: Path) -> None:
    split = split_by_id(IDS, {"test": 0.25, "train": -1}, salt="s")
    split.write(tmp_path / "split.json")
    assert Split.read(tmp_path / "split.json") == split
    assert [file.name for file in tmp_path.iterdir()] == ["split.json"]


@pytest.mark.parametrize(
    "sizes",
    [
        {"a": 0},
        {"a": 201},
        {"a": 1.5},
        {"a": -1, "b": -1},
        {"a": 200, "b": -1},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": 1.0},
        {"a": True},
        {"a": 0.001},
        {"a": None},
    ],
)
def test_impossible_sizes_are_refused(sizes: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        split_by_id(IDS, sizes, salt="s")


def test_broken_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingData):
        Split.read(tmp_path / "none.json")
    parts = ('{"a": ["x"], "b": ["x"]}', '{"a": "xyz"}', '{"a": [1, null]}')
    for content in ("", "[]", '{"salt": "s"}', *(f'{{"salt": "s", "parts": {part}}}' for part in parts)):
        (tmp_path / "split.json").write_text(content)
        with pytest.raises(BadData):
            Split.read(tmp_path / "split.json")
    with pytest.raises(BadData, match="twice"):
        split_by_id(["a", "a"], {"x": 1}, salt="s")
