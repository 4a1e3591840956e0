"""The official files of a dataset: downloaded and checked on request, or a message that says where to put them."""

import hashlib
import http.client
import os
import ssl
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from dpal.errors import BadData, InvalidArgument, MissingData

_CHUNK = 1 << 20
_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialFile:
    """A file as its authors publish it. An archive is unpacked into the folder and then no longer needed."""

    address: str
    name: str
    # md5:… or sha256:…, as the authors or the libraries of the field publish it.
    checksum: str
    # The files that must be in the folder once an archive is unpacked.
    unpacks_to: tuple[str, ...] = ()

    @property
    def unpacked(self) -> str:
        """What to do with an archive."""
        return f", unpacked to {', '.join(self.unpacks_to)} in that folder" if self.unpacks_to else ""

    def present(self, folder: Path) -> bool:
        return all((folder / name).is_file() for name in self.unpacks_to or (self.name,))


def data_folder() -> Path:
    """Where datasets are kept by default: $DPAL_DATA, or the user's cache."""
    chosen = os.environ.get("DPAL_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else cache / "dpal"


def ensure(files: tuple[OfficialFile, ...], folder: Path, *, title: str, download: bool) -> None:
    """See to it that the files are there, or say which are to be put where."""
    missing = [file for file in files if not file.present(folder)]
    if missing and not download:
        wanted = "\n".join(f"  {file.address}\n    as {folder / file.name}{file.unpacked}" for file in missing)
        raise MissingData(
            f"{title} is not in {folder}. Ask for a download (download=True), or put these files there:\n{wanted}"
        )
    for file in missing:
        fetch(file, folder)


def fetch(file: OfficialFile, folder: Path) -> None:
    """Download, check, and only then put in place."""
    if not file.address.startswith(("https://", "http://")):
        raise InvalidArgument("address", file.address, "an http or https address")
    folder.mkdir(parents=True, exist_ok=True)
    kind, _, wanted = file.checksum.partition(":")
    digest = hashlib.new(kind, usedforsecurity=False)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as scratch:
        draft = Path(scratch) / file.name
        try:
            with (
                urllib.request.urlopen(file.address, timeout=_SECONDS) as answer,  # noqa: S310 (checked above)
                draft.open("wb") as target,
                Progress(console=Console(stderr=True), transient=True) as progress,
            ):
                length = answer.headers.get("Content-Length")
                task = progress.add_task(file.name, total=int(length) if length else None)
                while chunk := answer.read(_CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
                    progress.advance(task, len(chunk))
        # The last two: connections that break off.
        except (urllib.error.URLError, TimeoutError, ConnectionError, ssl.SSLError, http.client.HTTPException) as error:
            raise MissingData(
                f"{file.address} cannot be reached ({error}). Without a network, fetch it elsewhere and put it at "
                f"{folder / file.name}{file.unpacked}. Nothing was written."
            ) from error
        if digest.hexdigest() != wanted:
            raise BadData(
                f"{file.address} has the {kind} {digest.hexdigest()} instead of {wanted}: it is damaged, or another "
                "file. Nothing was written."
            )
        if file.unpacks_to:
            _unpack(draft, Path(scratch) / "unpacked", folder, file.unpacks_to)
        else:
            draft.replace(folder / file.name)


def _unpack(archive: Path, scratch: Path, folder: Path, wanted: tuple[str, ...]) -> None:
    """Only the wanted files, each moved into place whole."""
    scratch.mkdir()
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            for name in wanted:
                zipped.extract(name, scratch)
    else:
        with tarfile.open(archive) as tarred:
            for name in wanted:
                tarred.extract(name, scratch, filter="data")
    for name in wanted:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).replace(folder / name)
