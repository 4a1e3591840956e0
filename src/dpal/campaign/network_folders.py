"""Whether a folder is on a network file system, where a campaign must not be: locks and durable writes may fail there.

SQLite needs locks that hold and writes that stay. NFS, SMB and most file systems in user space promise neither, so two
writers could charge at once, or a charge could be lost after its release.
"""

from pathlib import Path

from dpal.errors import InvalidArgument

# Types in /proc/mounts. Lustre, GPFS and CephFS keep POSIX locks across machines, so they are not here.
NETWORK = frozenset(
    {"9p", "afs", "cifs", "davfs", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.rclone"}
    | {"fuse.s3fs", "fuse.sshfs", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}
)
_MOUNTS = Path("/proc/mounts")


def network_type(folder: Path, mounts: str | None = None) -> str | None:
    """The type of the network file system that a folder is on; None on a local one, or where it cannot be told.

    `mounts` is the table of mounts as Linux writes it, if it is not this machine's.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    place = folder.absolute().resolve()
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescaped(fields[1]))
        # The longest mount point above the folder; of several on one point, the last.
        if (place == point or point in place.parents) and (found is None or len(point.parts) >= found[0]):
            found = len(point.parts), fields[2]
    return found[1] if found is not None and found[1] in NETWORK else None


def require_local(folder: Path, mounts: str | None = None) -> None:
    """Refuse to make a campaign on a network file system."""
    if (kind := network_type(folder, mounts)) is not None:
        raise InvalidArgument(
            "the folder",
            str(folder),
            f"on a disk of this machine: it is on a network file system ({kind}), where a lock may not hold and a "
            "write may be lost, so something could be charged twice, or released and forgotten. The data may stay "
            "there; back the campaign's folder up to it while nothing runs. Nothing was created",
        )


def network_warning(folder: Path, mounts: str | None = None) -> str | None:
    """What to say about a campaign that was moved to a network file system; None if it is on a local one."""
    kind = network_type(folder, mounts)
    if kind is None:
        return None
    return (
        f"The campaign {folder} is on a network file system ({kind}), where a lock may not hold and a write may be "
        "lost. Move the whole folder to a disk of this machine while nothing runs, and continue there."
    )


def _unescaped(field: str) -> str:
    """A path as it is: spaces, tabs, line ends and backslashes are written in octal."""
    for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, letter)
    return field
