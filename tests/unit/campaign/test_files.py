"""Files are written whole or not at all."""

import hashlib
from pathlib import Path

import pytest

from dpal.campaign import files
from dpal.campaign.files import (
    digest,
    draft_of,
    is_whole,
    overwrite,
    overwrite_and_remove,
    put_in_place,
    write_draft,
    write_text,
    write_whole,
)


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    write_text(path, "old")

    def failing(draft: Path) -> None:
        draft.write_text("half of the n")
        raise KeyboardInterrupt

    for write in (write_whole, write_draft):
        with pytest.raises(KeyboardInterrupt):
            write(path, failing)
        assert path.read_text() == "old"
        assert [found.name for found in tmp_path.iterdir()] == ["status.json"]


def test_the_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "model"

    def watched(draft: Path) -> None:
        draft.write_text("new")
        assert not path.exists() and draft == draft_of(path)

    write_whole(path, watched)
    assert path.read_text() == "new"
    assert not draft_of(path).exists()


def test_a_finished_draft_is_put_in_place_and_another_is_not(tmp_path: Path) -> None:
    """After a crash between the record of a model and its renaming, the recorded bytes and no others get the name."""
    path, wanted = tmp_path / "model", hashlib.sha256(b"recorded").hexdigest()
    assert not put_in_place(path, wanted)
    draft_of(path).write_bytes(b"another")
    assert not put_in_place(path, wanted)
    assert not path.exists()
    draft_of(path).write_bytes(b"recorded")
    assert put_in_place(path, wanted)
    assert path.read_bytes() == b"recorded" and not draft_of(path).exists()
    # Once it is there, a draft that someone left changes nothing.
    draft_of(path).write_bytes(b"another")
    assert put_in_place(path, wanted)
    assert path.read_bytes() == b"recorded"


def test_what_is_missing_or_a_folder_is_not_whole(tmp_path: Path) -> None:
    empty = hashlib.sha256(b"").hexdigest()
    assert not is_whole(tmp_path / "nothing", empty)
    assert not is_whole(tmp_path, empty)
    (tmp_path / "empty").touch()
    assert is_whole(tmp_path / "empty", empty)
    assert digest(tmp_path / "empty") == empty


def test_overwriting_leaves_zeros_where_the_bytes_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # More than one piece, the last of them not whole.
    monkeypatch.setattr(files, "_CHUNK", 16)
    path = tmp_path / "secret"
    path.write_bytes(b"s" * 50)
    with path.open("rb") as still_open:
        assert overwrite(path)
        assert still_open.read() == bytes(50)
    path.write_bytes(b"s" * 50)
    with path.open("rb") as still_open:
        overwrite_and_remove(path)
        assert still_open.read() == bytes(50)
    assert list(tmp_path.iterdir()) == []
    assert not overwrite(path)
    overwrite_and_remove(path)
    assert list(tmp_path.iterdir()) == []
