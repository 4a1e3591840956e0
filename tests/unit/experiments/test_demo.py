"""The demonstration: two campaigns that differ in their selection alone, in a folder that was made for it."""

from pathlib import Path

import pytest

from dpal.campaign.config import checked_config
from dpal.errors import InvalidArgument
from dpal.experiments.demo import _MARK, CAMPAIGNS, _clear, digits_document


def test_both_campaigns_make_the_same_promise() -> None:
    random, threshold = (checked_config(digits_document(plan)).model_dump() for plan in CAMPAIGNS.values())
    assert random["plan"].pop("selection") != threshold["plan"].pop("selection")
    assert random == threshold
    # Private: no seed, and the held-out set is public.
    assert (random["seed"], random["not_private"]) == (None, False)


def test_an_earlier_demonstration_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "demo"
    _clear(folder)
    assert [path.name for path in folder.iterdir()] == [_MARK]
    (folder / "random").mkdir()
    _clear(folder)
    assert [path.name for path in folder.iterdir()] == [_MARK]


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_it_did_not_make_is_never_cleared(tmp_path: Path, kind: str) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("mine")
    with pytest.raises(InvalidArgument, match="new, empty, or made by an earlier demonstration"):
        _clear(tmp_path if kind == "folder" else thesis)
    assert thesis.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [thesis]
