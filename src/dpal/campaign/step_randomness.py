"""The randomness of a step: its secret key, kept from the charge until the step is recorded, and the bits it gives.

Each key is in a file of its own, apart from the database. SQLite copies a page to its rollback journal before it
changes it, and the deleted journal's blocks stay on the disk: a key that was ever in the database outlives its erasure.
A file of its own can be overwritten in place.
"""

import hashlib
import os
from collections.abc import Collection
from pathlib import Path

from dpal.campaign import fault_points
from dpal.campaign.files import draft_of, overwrite, overwrite_and_remove, sync_folder
from dpal.campaign.layout import SEALED_KEYS, snapshot_name
from dpal.errors import DamagedCampaign
from dpal.randomness import Randomness, SealedRandomness, SeededRandomness, new_key
from dpal.randomness.sealed import KEY_BYTES

_SUFFIX = ".key"
_CHECK_BYTES = 8


def fresh_key(seed: int | None, charge: int, withdrawn: int = 0) -> bytes:
    """A key for the charge with this ordinal: from the system's entropy, or from a seed, which protects nobody.

    `withdrawn` is how many records are withdrawn, if any were withdrawn while the charge was open.
    """
    if seed is None:
        return new_key()
    again = f", {withdrawn}" if withdrawn else ""
    return hashlib.sha256(f"dpal, nothing is private: {seed}, {charge}{again}".encode()).digest()


def randomness_of(key: bytes, seed: int | None) -> Randomness:
    """The bits of a step. The same key gives the same bits, so a step that died is repeated exactly."""
    if seed is None:
        return SealedRandomness(key)
    return SeededRandomness(seed=int.from_bytes(key, "little"), nothing_is_private=True)


def _check(key: bytes) -> bytes:
    """A checksum, erased together with its key."""
    return hashlib.sha256(b"dpal key" + key).digest()[:_CHECK_BYTES]


class SealedKeys:
    """The key files of one campaign, named by the number of the charge."""

    def __init__(self, campaign: Path) -> None:
        self.folder = campaign / SEALED_KEYS

    def _path(self, charge: int) -> Path:
        return self.folder / f"{charge}{_SUFFIX}"

    def charges(self) -> list[int]:
        """The charges that have a key file, in order."""
        return sorted(int(path.stem) for path in self.folder.glob(f"*{_SUFFIX}") if path.stem.isdecimal())

    def write(self, charge: int, key: bytes) -> None:
        """Write a key to the disk, durably. This comes before the commit of its charge: no charge may lack its key."""
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700)
            sync_folder(self.folder.parent)
        # A file with this number belongs to a charge that was never committed.
        self.erase(charge)
        handle = os.open(self._path(charge), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(key + _check(key))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)
        fault_points.reached("seal.written")

    def read(self, charge: int) -> bytes:
        """The key of a charge. A damaged one is refused: with it, the same charge would pay for another step."""
        try:
            content = self._path(charge).read_bytes()
        except FileNotFoundError:
            content = b""
        key, check = content[:KEY_BYTES], content[KEY_BYTES:]
        # Earlier versions wrote keys without a checksum.
        is_whole = len(key) == KEY_BYTES and check in (b"", _check(key))
        if not is_whole or not any(key):
            raise DamagedCampaign(
                f"The sealed key of the step that was charged is not in {self.folder}, or is damaged, so the step "
                "cannot be repeated as it was. Restore the whole folder from its newest backup. A training phase can "
                f"also be given up: dpal give-up {self.folder.parent}. Nothing was changed."
            )
        return key

    def erase(self, charge: int) -> None:
        """Overwrite a key with zeros in place, then remove its file. Does nothing if there is no such file.

        What it has encrypted goes too: the snapshot of a phase, which is unreadable from the first moment of this.
        """
        path = self._path(charge)
        if overwrite(path):
            fault_points.reached("seal.overwritten")
            path.unlink()
            sync_folder(self.folder)
        snapshot = self.folder.parent / snapshot_name(charge)
        for file in (snapshot, draft_of(snapshot)):
            overwrite_and_remove(file)

    def snapshots(self) -> set[int]:
        """The charges that have a snapshot of their phase, or a draft of one."""
        names = [path.name.lstrip(".").partition(".")[0] for path in self.folder.glob("*.snapshot*")]
        return {int(name) for name in names if name.isdecimal()}

    def erase_all_but(self, needed: Collection[int]) -> None:
        """Erase what a process that died left behind: keys of recorded steps, and of charges never committed."""
        for charge in {*self.charges(), *self.snapshots()}:
            if charge not in needed:
                self.erase(charge)
