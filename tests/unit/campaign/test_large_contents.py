"""What a campaign keeps of a large pool, and that it refuses whatever is not as it was."""

import json
import shutil
import stat
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from large_campaigns import ROWS, create
from large_pools import write_pool

from dpal.campaign import withdrawal
from dpal.campaign.campaign import Campaign
from dpal.campaign.fingerprints import fingerprints_of
from dpal.campaign.large_contents import BlockPrints, at_hand
from dpal.campaign.layout import ASKED, BLOCKS, CONTENTS, SCORES
from dpal.campaign.writer import writing
from dpal.errors import DamagedCampaign, RecordsChanged


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("large")
    folder = write_pool(base / "pool", ROWS, row_group=500)
    campaign = create(base / "campaign", folder)
    campaign.run()
    return base / "campaign", folder


@pytest.fixture
def copied(finished: tuple[Path, Path], tmp_path: Path) -> Path:
    shutil.copytree(finished[0], tmp_path / "campaign")
    return tmp_path / "campaign"


def test_the_folder_has_fingerprints_of_row_groups_and_copies_of_whom_was_asked(finished: tuple[Path, Path]) -> None:
    folder, pool = finished
    campaign = Campaign(folder)
    state, contents = campaign.state(), campaign.contents()
    assert not (folder / CONTENTS).exists()
    blocks = json.loads((folder / BLOCKS).read_text())
    assert [entry[:3] for entry in blocks] == [[f"part-{n:04d}.parquet", g, 500] for n in (0, 1) for g in (0, 1, 2)]
    assert contents.ids == tuple(name for group in state.groups for name in group)
    files = sorted((folder / ASKED).iterdir())
    assert [file.name for file in files] == ["group-0.parquet", "group-1.parquet"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    # The copies are the rows of the pool.
    table = pq.read_table(pool)
    rows = dict(zip(table.column("id").to_pylist(), table.column("features").to_pylist(), strict=True))
    hand = at_hand(campaign.open_data(), state, folder)
    expected = np.asarray([rows[name] for name in contents.ids], dtype=np.float32)
    everyone = np.arange(len(hand))
    assert np.array_equal(hand.records.read(everyone), expected)
    assert tuple(fingerprints_of(hand.records, everyone, contents.key)) == contents.fingerprints
    assert campaign.verify().holds


def test_damage_is_found(copied: Path) -> None:
    campaign = Campaign(copied)
    for name in (BLOCKS, f"{ASKED}/group-1.parquet"):
        content = (copied / name).read_bytes()
        for damaged in (b"[]", None):
            (copied / name).unlink() if damaged is None else (copied / name).write_bytes(damaged)
            checks = {check.what: check for check in campaign.verify().checks}
            assert not checks["files"].holds and "asked" in checks["files"].detail
            if name != BLOCKS:
                with pytest.raises(DamagedCampaign, match="Restore the campaign's folder"):
                    campaign.contents()
        (copied / name).write_bytes(content)
    assert campaign.verify().holds
    with pytest.raises(DamagedCampaign, match=BLOCKS):
        BlockPrints.read(copied, expected="0" * 64)


def test_a_copy_with_other_values_is_refused_when_it_is_read(copied: Path) -> None:
    place = copied / ASKED / "group-0.parquet"
    table = pq.read_table(place)
    column = table.column("features").combine_chunks()
    order = list(range(len(column)))
    order[0], order[1] = 1, 0
    # Two people's values are swapped; ids and fingerprints are as recorded.
    pq.write_table(table.set_column(table.column_names.index("features"), "features", column.take(order)), place)
    with pytest.raises(RecordsChanged, match=r"2 record\(s\) are not as they were"):
        Campaign.open(copied)


def test_withdrawn_records_leave_the_copies(copied: Path) -> None:
    campaign = Campaign.open(copied)
    state = campaign.state()
    gone = [state.groups[0][3], state.groups[1][0]]
    before = b"".join(file.read_bytes() for file in (copied / ASKED).iterdir())
    rows = at_hand(campaign.open_data(), state, copied).take(gone).records.read(np.arange(2))
    assert all(row.tobytes()[:12] in before for row in np.asarray(rows))
    assert campaign.withdraw(gone) == 2
    after = b"".join(file.read_bytes() for file in (copied / ASKED).iterdir())
    assert not any(row.tobytes()[:12] in after for row in np.asarray(rows))
    hand = at_hand(campaign.open_data(), campaign.state(), copied)
    assert not set(hand.ids) & set(gone) and len(hand) == len(campaign.contents().ids) - 2
    assert campaign.verify().holds
    Campaign.open(copied)


def test_what_a_killed_process_left_is_removed(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(copied)
    gone = campaign.state().groups[0][0]
    (copied / SCORES).write_bytes(b"scores")
    # It dies when the withdrawal is recorded, before the copy is changed.
    with monkeypatch.context() as patched:
        patched.setattr(withdrawal, "blank_withdrawn", lambda folder, state: None)
        campaign.withdraw([gone])
    place = copied / ASKED / "group-0.parquet"
    assert pq.read_table(place).column("features").null_count == 0
    with writing(campaign.reader):
        assert pq.read_table(place).column("features").null_count == 1
    assert not (copied / SCORES).exists()
    written = place.stat().st_mtime_ns
    with writing(campaign.reader):
        # Once is enough.
        assert place.stat().st_mtime_ns == written
    assert campaign.verify().holds


def test_copies_of_a_selection_that_was_never_recorded_are_removed(copied: Path) -> None:
    campaign = Campaign(copied)
    kept = sorted((copied / ASKED).iterdir())
    # It died after it had written them; what it chose may be chosen otherwise now, or never again.
    for name in ("group-2.parquet", ".group-2.parquet.draft"):
        shutil.copy(copied / ASKED / "group-1.parquet", copied / ASKED / name)
    with writing(campaign.reader):
        assert sorted((copied / ASKED).iterdir()) == kept
    assert campaign.verify().holds


def test_other_row_groups_are_refused(finished: tuple[Path, Path], tmp_path: Path) -> None:
    campaign = Campaign(finished[0])
    prints = BlockPrints.read(finished[0], expected=campaign.state().created.contents)
    pool = campaign.open_data()
    assert len(prints.for_table(pool.table)) == 6
    moved = shutil.copytree(finished[1], tmp_path / "moved")
    for rows, row_group, message in ((ROWS, 400, "row group 0 of part-0000"), (ROWS + 1, 500, "part-0001")):
        write_pool(tmp_path / f"{rows}", rows, row_group=row_group)
        other = type(pool.table).open(str(tmp_path / f"{rows}"), pool.table.columns)
        with pytest.raises(RecordsChanged, match=message):
            prints.for_table(other)
    # The same files in another place are the same pool.
    assert prints.for_table(type(pool.table).open(str(moved), pool.table.columns))
