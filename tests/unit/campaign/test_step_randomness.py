"""Sealed keys: in files of their own, gone for good once the step is recorded, never in the database or its journal."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dying_campaigns import died_at
from small_campaigns import linear_campaign, linear_opened

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.step_randomness import SealedKeys
from dpal.errors import DamagedCampaign


class Witness:
    """Sees every key while it is sealed, and holds on to every journal of the database, also after it is unlinked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: set[bytes] = set()
        self.handles: list[int] = []

    def look(self) -> None:
        self.keys |= {SealedKeys(self.folder).read(charge) for charge in SealedKeys(self.folder).charges()}

    def hold_journal(self) -> None:
        self.handles.append(os.open(self.folder / "campaign.db-journal", os.O_RDONLY))

    def places_with_keys(self) -> list[str]:
        """Where a key is to be found now: in files of the folder, and in journals that no name leads to."""
        files = {path.as_posix(): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        journals = {f"journal {number}": _content(handle) for number, handle in enumerate(self.handles)}
        assert all(len(content) > 512 for content in journals.values())
        return [name for name, content in (files | journals).items() if any(key in content for key in self.keys)]


def _content(handle: int) -> bytes:
    return os.pread(handle, os.fstat(handle).st_size, 0)


@contextmanager
def watched(folder: Path, *, plant: bool = False) -> Iterator[Witness]:
    """With `plant`, each key goes through the database too, as it did when the database held them."""
    witness, original = Witness(folder), fault_points.reached

    def reached(point: str) -> None:
        if point == "seal.written":
            witness.look()
        if point == "store.in-transaction":
            witness.hold_journal()
        if plant and point in ("train.charged", "train.trained"):
            _through_the_database(witness, put=point == "train.charged")

    fault_points.reached = reached
    try:
        yield witness
    finally:
        fault_points.reached = original
        for handle in witness.handles:
            os.close(handle)


def _through_the_database(witness: Witness, *, put: bool) -> None:
    connection = sqlite3.connect(witness.folder / "campaign.db", isolation_level=None)
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("CREATE TABLE IF NOT EXISTS planted (key BLOB)")
    connection.execute("BEGIN IMMEDIATE")
    if put:
        (charge,) = SealedKeys(witness.folder).charges()
        connection.execute("INSERT INTO planted VALUES (?)", (SealedKeys(witness.folder).read(charge),))
    else:
        connection.execute("DELETE FROM planted")
    witness.hold_journal()
    connection.execute("COMMIT")
    connection.close()


def test_no_key_is_anywhere_after_its_step_not_even_in_an_unlinked_journal(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    with watched(tmp_path / "c") as witness:
        assert campaign.run().stage == "finished"
        # Three selections and three phases, each with a key of its own.
        assert len(witness.keys) == 6
        assert len(witness.handles) > 12
        assert witness.places_with_keys() == []


def test_a_key_that_went_through_the_database_is_found_in_a_journal(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    with watched(tmp_path / "c", plant=True) as witness:
        assert campaign.run().stage == "finished"
        found = witness.places_with_keys()
    assert found
    assert all(name.startswith("journal") for name in found)


def test_a_key_is_for_the_owner_alone(tmp_path: Path) -> None:
    keys = SealedKeys(tmp_path)
    keys.write(7, b"k" * 32)
    assert stat.S_IMODE((tmp_path / "seals/7.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "seals").stat().st_mode) == 0o700
    assert keys.charges() == [7]
    assert keys.read(7) == b"k" * 32


def test_erasing_overwrites_the_bytes_where_they_lie(tmp_path: Path) -> None:
    keys = SealedKeys(tmp_path)
    keys.write(7, b"k" * 32)
    with (tmp_path / "seals/7.key").open("rb") as still_open:
        keys.erase(7)
        assert not any(still_open.read())
    assert keys.charges() == []
    keys.erase(7)


def test_the_key_of_a_charge_that_was_never_committed_is_replaced_and_overwritten(tmp_path: Path) -> None:
    keys = SealedKeys(tmp_path)
    keys.write(7, b"k" * 32)
    with (tmp_path / "seals/7.key").open("rb") as orphan:
        keys.write(7, b"l" * 32)
        assert not any(orphan.read())
    assert keys.read(7) == b"l" * 32


def test_a_damaged_key_is_never_used(tmp_path: Path) -> None:
    """With another key, the same charge would pay for a second step."""
    keys = SealedKeys(tmp_path)
    keys.write(7, b"k" * 32)
    path = tmp_path / "seals/7.key"
    whole = path.read_bytes()
    flipped = [bytes([*whole[:place], whole[place] ^ 1, *whole[place + 1 :]]) for place in range(len(whole))]
    torn = [whole[:length] for length in range(len(whole)) if length != 32]
    for content in (*flipped, *torn, whole + b"x"):
        path.write_bytes(content)
        with pytest.raises(DamagedCampaign, match=r"or is damaged.*backup.*Nothing was changed"):
            keys.read(7)
    # As an earlier version wrote it.
    path.write_bytes(whole[:32])
    assert keys.read(7) == b"k" * 32


@pytest.mark.parametrize("content", [None, b"", bytes(32), bytes(40)])
def test_a_missing_or_erased_key_is_never_used(tmp_path: Path, content: bytes | None) -> None:
    keys = SealedKeys(tmp_path)
    keys.write(7, b"k" * 32)
    keys.erase(7)
    if content is not None:
        (tmp_path / "seals/7.key").write_bytes(content)
    with pytest.raises(DamagedCampaign, match=r"sealed key.*backup.*Nothing was changed"):
        keys.read(7)


def test_the_key_of_an_open_charge_that_is_gone_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    linear_campaign(folder)
    died_at(folder, "train.charged")
    (charge,) = SealedKeys(folder).charges()
    SealedKeys(folder).erase(charge)
    found = Campaign(folder).verify()
    assert [check.what for check in found.checks if not check.holds] == ["releases"]
    with pytest.raises(DamagedCampaign, match="sealed key"):
        linear_opened(folder).run()
