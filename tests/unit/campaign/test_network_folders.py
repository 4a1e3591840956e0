from pathlib import Path

import pytest

from dpal.campaign import creation, network_folders
from dpal.campaign.network_folders import network_type, network_warning, require_local
from dpal.errors import InvalidArgument

MOUNTS = """\
/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/homes /home nfs4 rw,vers=4.2 0 0
/dev/vdb /home/local\\040disk xfs rw 0 0
//nas/share /mnt/nas cifs rw 0 0
bucket /mnt/bucket fuse.s3fs rw 0 0
/dev/vdc /mnt/twice ext4 rw 0 0
server:/late /mnt/twice nfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/srv/campaign", None),
        ("/home/anna/campaign", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead/campaign", None),
        ("/home/local disk/campaign", None),
        ("/mnt/nas/a/b/c", "cifs"),
        ("/mnt/bucket/campaign", "fuse.s3fs"),
        ("/mnt/twice/campaign", "nfs"),
    ],
)
def test_the_nearest_mount_decides(folder: str, kind: str | None) -> None:
    assert network_type(Path(folder), MOUNTS) == kind
    assert (network_warning(Path(folder), MOUNTS) is None) is (kind is None)
    if kind is None:
        require_local(Path(folder), MOUNTS)
    else:
        with pytest.raises(InvalidArgument, match=f"network file system .{kind}"):
            require_local(Path(folder), MOUNTS)


def test_this_machine_is_asked_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"server:/x {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr(network_folders, "_MOUNTS", table)
    assert network_type(tmp_path / "campaign") == "nfs"
    # Nothing is created there: this is the first thing that is looked at.
    with pytest.raises(InvalidArgument, match="Nothing was created"):
        creation.create_folder(tmp_path / "campaign", None, None, None, ())
    assert not (tmp_path / "campaign").exists()
    # Systems without such a table cannot be asked.
    monkeypatch.setattr(network_folders, "_MOUNTS", tmp_path / "none")
    assert network_type(tmp_path / "campaign") is None
