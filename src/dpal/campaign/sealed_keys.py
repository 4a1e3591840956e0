"""The secret keys of steps that are charged and not recorded yet, each in a file of its own, apart from the database.

SQLite copies a page to its rollback journal before it changes it, and the deleted journal's blocks stay on the disk: a
key that was ever in the database outlives its erasure. A file of its own can be overwritten where it lies.
"""

import os
from collections.abc import Collection
from pathlib import Path

from dpal.campaign import faults
from dpal.campaign.files import sync_folder
from dpal.errors import DamagedCampaign

NAME = "seals"
_SUFFIX = ".key"


class SealedKeys:
    """The key files of one campaign, named by the number of the charge."""

    def __init__(self, campaign: Path) -> None:
        self.folder = campaign / NAME

    def _path(self, charge: int) -> Path:
        return self.folder / f"{charge}{_SUFFIX}"

    def charges(self) -> list[int]:
        """Charges whose keys are there, in order."""
        return sorted(int(path.stem) for path in self.folder.glob(f"*{_SUFFIX}") if path.stem.isdecimal())

    def write(self, charge: int, key: bytes) -> None:
        """Put a key on the disk, to last. Do this before the charge is committed: no charge may be without its key."""
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700)
            sync_folder(self.folder.parent)
        # One that is there belongs to a charge that was never committed.
        self.erase(charge)
        handle = os.open(self._path(charge), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)
        faults.reached("seal.written")

    def read(self, charge: int) -> bytes:
        """The key of a charge."""
        try:
            key = self._path(charge).read_bytes()
        except FileNotFoundError:
            key = b""
        if not any(key):
            raise DamagedCampaign(
                f"The sealed key of the step that was charged is not in {self.folder}, so the step cannot be done "
                "again as it was. Restore the whole folder from its newest backup; a training phase can also be given "
                f"up: dpal give-up {self.folder.parent}. Nothing was changed."
            )
        return key

    def erase(self, charge: int) -> None:
        """Overwrite a key with zeros where it lies, then remove its file. Nothing happens where there is none."""
        path = self._path(charge)
        try:
            with path.open("rb+") as file:
                file.write(bytes(path.stat().st_size))
                file.flush()
                os.fsync(file.fileno())
        except FileNotFoundError:
            return
        faults.reached("seal.overwritten")
        path.unlink()
        sync_folder(self.folder)

    def erase_all_but(self, needed: Collection[int]) -> None:
        """Erase what a process that died left behind: keys of recorded steps, and of charges never committed."""
        for charge in self.charges():
            if charge not in needed:
                self.erase(charge)
