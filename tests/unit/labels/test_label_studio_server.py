"""Where a token may stand, and what is said of a server that is not there. A real one is met in end_to_end."""

from pathlib import Path

import pytest

from dpal.errors import InvalidArgument, LabelStudioFailed
from dpal.labels import label_studio_server
from dpal.labels.label_studio_server import LabelStudio, read_token

SECRET = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105


def test_a_token_is_in_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv("MY_TOKEN", f" {SECRET} ")
    assert read_token(str(tmp_path / "token")) == read_token("$MY_TOKEN") == SECRET


@pytest.mark.parametrize("place", [SECRET, "/nowhere/token", "", "$NOT_SET", "x" * 10_000])
def test_a_token_in_the_place_of_its_place_is_not_repeated(place: str) -> None:
    with pytest.raises(InvalidArgument, match=r"labels\.token") as caught:
        read_token(place)
    assert SECRET not in str(caught.value)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_studio_server, "_PAUSE_SECONDS", 0.01)
    server = LabelStudio("http://127.0.0.1:9/", SECRET)
    with pytest.raises(LabelStudioFailed, match=r"127\.0\.0\.1:9 did not answer GET .*Is it running") as caught:
        server.projects()
    assert SECRET not in str(caught.value) and SECRET not in repr(server)
    with pytest.raises(InvalidArgument, match=r"labels\.url"):
        LabelStudio("ftp://x", SECRET)
