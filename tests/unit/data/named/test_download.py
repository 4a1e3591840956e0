"""Official files are checked before they are put in place."""

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dpal.data.named.download import OfficialFile, ensure, fetch
from dpal.errors import BadData, MissingData


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A real web server for a folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/", folder
        running.shutdown()
        thread.join()


def offered(server: tuple[str, Path], name: str, content: bytes, unpacks_to: tuple[str, ...] = ()) -> OfficialFile:
    (server[1] / name).write_bytes(content)
    checksum = "sha256:" + hashlib.sha256(content).hexdigest()
    return OfficialFile(address=server[0] + name, name=name, checksum=checksum, unpacks_to=unpacks_to)


def test_a_download_is_checked_and_put_in_place(server: tuple[str, Path], tmp_path: Path) -> None:
    file = offered(server, "data.bin", b"x" * 3_000_000)
    ensure((file,), tmp_path / "here", title="data", download=True)
    assert (tmp_path / "here/data.bin").read_bytes() == b"x" * 3_000_000
    # What is there is not fetched again.
    (server[1] / "data.bin").unlink()
    ensure((file,), tmp_path / "here", title="data", download=True)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archives_give_the_wanted_files_only(server: tuple[str, Path], tmp_path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("inner/wanted.txt", "yes")
            archive.writestr("../escape.txt", "no")
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name, content in (("inner/wanted.txt", b"yes"), ("../escape.txt", b"no")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    file = offered(server, f"a.{kind}", buffer.getvalue(), unpacks_to=("inner/wanted.txt",))
    fetch(file, tmp_path / "here")
    assert [path.name for path in (tmp_path / "here").rglob("*")] == ["inner", "wanted.txt"]
    assert not (tmp_path / "escape.txt").exists()


def test_a_wrong_checksum_writes_nothing(server: tuple[str, Path], tmp_path: Path) -> None:
    file = offered(server, "data.bin", b"right")
    (server[1] / "data.bin").write_bytes(b"wrong")
    with pytest.raises(BadData, match=r"sha256.*Nothing was written"):
        fetch(file, tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


def test_no_server_is_a_clear_error(tmp_path: Path) -> None:
    file = OfficialFile(address="http://127.0.0.1:9/data.bin", name="data.bin", checksum="md5:0")
    with pytest.raises(MissingData, match=r"cannot be reached.*data\.bin"):
        fetch(file, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_ends_in_the_middle(tmp_path: Path) -> None:
    class Cut(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"ffff\r\nonly this")
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    with ThreadingHTTPServer(("127.0.0.1", 0), Cut) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{running.server_port}/a.tar.gz"
        file = OfficialFile(address=address, name="a.tar.gz", checksum="md5:0", unpacks_to=("inside.bin",))
        try:
            # An archive has to be unpacked as well.
            with pytest.raises(MissingData, match=r"a\.tar\.gz, unpacked to inside\.bin.*Nothing was written"):
                fetch(file, tmp_path)
        finally:
            running.shutdown()
            thread.join()
    assert list(tmp_path.iterdir()) == []
