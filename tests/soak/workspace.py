"""A small disk of a worker's own, which can be made full or read-only without any other process noticing.

With rights to mount (as root, or in a user namespace), it is a file system in memory that only this worker sees.
Without, it is an ordinary folder: a full disk is then a limit on the size of files, and read-only is a matter of modes.
"""

import ctypes
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18
_PAGE = 4096
_ROOMY = 256 << 20


def _system(name: str, *words: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    given = [word.encode() if isinstance(word, str) else word for word in words]
    if getattr(library, name)(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def own_mounts() -> None:
    """From here on, what this process mounts is seen by it and its children alone."""
    user, group = os.getuid(), os.getgid()
    try:
        _system("unshare", NEW_MOUNTS)
    except OSError:
        _system("unshare", NEW_USER | NEW_MOUNTS)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _system("mount", "none", "/", None, RECURSIVE | PRIVATE, None)


@dataclass(frozen=True)
class Workspace:
    """The folder that a worker's campaigns are in."""

    folder: Path
    is_mounted: bool

    def fill(self, room: int) -> None:
        """Leave so many bytes free. Only where it is mounted."""
        status = os.statvfs(self.folder)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        # Not through a file of that size: the disk itself becomes smaller.
        self._resize(used + max(room, 0) // _PAGE * _PAGE)

    def free(self) -> None:
        self._resize(_ROOMY)

    def _resize(self, size: int) -> None:
        _system("mount", "none", str(self.folder), "tmpfs", REMOUNT, f"size={max(size, _PAGE)},mode=755")


def make_read_only(folder: Path) -> None:
    """For this process and its children, nothing in the folder can be changed. Others still can."""
    own_mounts()
    _system("mount", str(folder), str(folder), None, BIND, None)
    _system("mount", "none", str(folder), None, REMOUNT | BIND | READ_ONLY, None)


@contextmanager
def workspace(folder: Path) -> Generator[Workspace]:
    """A new folder with a disk of its own, removed at the end. For a process that does nothing else."""
    folder.mkdir(parents=True)
    try:
        own_mounts()
        _system("mount", "tmpfs", str(folder), "tmpfs", 0, f"size={_ROOMY},mode=755")
        is_mounted = True
    except OSError:
        is_mounted = False
    try:
        yield Workspace(folder, is_mounted)
    finally:
        if is_mounted:
            # Detached: a child that was killed may still hold it.
            _system("umount2", str(folder), 2)
        shutil.rmtree(folder, ignore_errors=True)
