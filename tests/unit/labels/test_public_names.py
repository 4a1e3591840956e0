"""What records are called outside tells nothing about them, and leads back to them."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_campaigns import linear_model, linear_plan, linear_pool, small_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config, settings_hash
from dpal.campaign.store import Store
from dpal.data import Pool, from_arrays
from dpal.errors import LabelsRefused
from dpal.labels.public_names import OpaqueNames, public_names

SECRET, OTHER = bytes(32), bytes(31) + b"\1"
IDS = ["ill/03.png", "healthy/4.png", "SMITH_1950", " a ", "0005", "ümlaut"]


def opaque(ids: list[str] = IDS, secret: bytes = SECRET) -> OpaqueNames:
    names = public_names(ids, secret=secret, ids_are_free_of_content=False)
    assert isinstance(names, OpaqueNames)
    return names


def test_names_are_short_and_readable_and_lead_back() -> None:
    for record_id in IDS:
        name = opaque().name_of(record_id)
        assert re.fullmatch(r"([0-9a-hjkmnp-tv-z]{4}-){2}[0-9a-hjkmnp-tv-z]{4}", name)
        assert opaque().id_of(name) == record_id
        # As people and spreadsheets write it.
        for written in (f" {name.upper()} ", name.replace("-", ""), name.replace("-", " "), name.replace("0", "O")):
            assert opaque().id_of(written) == record_id


def test_names_hang_on_the_secret_and_the_id_alone() -> None:
    assert opaque().names == opaque(list(reversed(IDS))).names
    assert opaque(IDS[:2]).names.items() <= opaque().names.items()
    assert not set(opaque().names.values()) & set(opaque(secret=OTHER).names.values())


def test_names_show_no_order_and_no_likeness_of_ids() -> None:
    ids = [f"ill/{number:03d}.png" for number in range(400)]
    places = np.argsort(np.argsort([opaque(ids).name_of(record_id) for record_id in ids]))
    assert abs(np.corrcoef(places, np.arange(400))[0, 1]) < 0.25
    first = {opaque(ids).name_of(record_id)[0] for record_id in ids}
    assert len(first) == 32


def test_names_that_would_be_alike_are_lengthened(monkeypatch: pytest.MonkeyPatch) -> None:
    # With one group instead of three, two of some thousands of ids share a name.
    monkeypatch.setattr("dpal.labels.public_names._GROUPS", 1)
    ids = [str(number) for number in range(3000)]
    names = opaque(ids)
    lengths = [len(name) for name in names.names.values()]
    assert set(lengths) == {4, 9}
    assert len(names.ids) == len(set(names.names.values())) == 3000
    assert all(names.id_of(names.name_of(record_id)) == record_id for record_id in ids)


def test_a_name_is_in_no_repr() -> None:
    assert "ill" not in repr(opaque())
    assert opaque().name_of(IDS[0]) not in repr(opaque())


def test_ids_that_are_free_of_content_stay() -> None:
    names = public_names(IDS, secret=SECRET, ids_are_free_of_content=True)
    assert [names.name_of(record_id) for record_id in IDS] == IDS
    assert names.id_of(" a ") == " a "
    assert names.id_of(" SMITH_1950") == "SMITH_1950"
    assert names.id_of("a") is None


def undeclared() -> Pool:
    return replace(linear_pool(), ids_are_free_of_content=False)


def waiting_campaign(folder: Path, pool: Pool, **options: object) -> Campaign:
    campaign = Campaign.create(folder, plan=linear_plan(), pool=pool, model=linear_model(), **options)
    campaign.run()
    return campaign


def table_of(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.reader(lines))


def test_an_export_shows_no_id_and_its_answers_come_back(tmp_path: Path) -> None:
    pool = undeclared()
    campaign = waiting_campaign(tmp_path / "c", pool)
    assert campaign.export_labels(tmp_path / "out", pool) == 8
    header, *rows = table_of(tmp_path / "out/labels.csv")
    asked = {row[0] for row in rows}
    assert not asked & set(pool.ids.tolist())
    assert [row[0] for row in rows] == sorted(asked)
    with (tmp_path / "back.csv").open("w", newline="") as lines:
        csv.writer(lines).writerows([header, *([*row[:-1], "yes"] for row in rows[:5])])
    folder = Campaign(tmp_path / "c")
    assert folder.import_labels(tmp_path / "back.csv", pool) == {
        "new": 5,
        "corrected": 0,
        "unchanged": 0,
        "withdrawn": 0,
    }
    # Again, with one that is new and one that is corrected.
    with (tmp_path / "back.csv").open("w", newline="") as lines:
        csv.writer(lines).writerows(
            [header, *([*row[:-1], "no" if i == 4 else "yes"] for i, row in enumerate(rows[:6]))]
        )
    assert folder.import_labels(tmp_path / "back.csv", pool) == {
        "new": 1,
        "corrected": 1,
        "unchanged": 4,
        "withdrawn": 0,
    }
    state = folder.state()
    with_answers = {name_of(tmp_path / "c", pool, record_id) for record_id in state.answers}
    assert with_answers == {row[0] for row in rows[:6]}
    # What still waits is handed out under the same names.
    campaign.export_labels(tmp_path / "again", pool)
    assert {row[0] for row in table_of(tmp_path / "again/labels.csv")[1:]} == asked - with_answers


def name_of(folder: Path, pool: Pool, record_id: str) -> str:
    store = Store(folder, read_only=True)
    try:
        return public_names(pool.ids.tolist(), secret=store.secret(), ids_are_free_of_content=False).name_of(record_id)
    finally:
        store.close()


def test_real_ids_and_unknown_names_are_listed_and_nothing_is_taken(tmp_path: Path) -> None:
    pool = undeclared()
    campaign = waiting_campaign(tmp_path / "c", pool)
    asked = next(iter(campaign.state().groups[0]))
    other = next(name for name in pool.ids.tolist() if name not in campaign.state().groups[0])
    file = tmp_path / "labels.csv"
    file.write_text(f"id,label\n{asked},yes\nzzzz-zzzz-zzzz,no\n{name_of(tmp_path / 'c', pool, other)},no\n")
    with pytest.raises(LabelsRefused) as caught:
        Campaign(tmp_path / "c").import_labels(file, pool)
    for words in (
        "3 problem(s)",
        f"line 2: {asked!r} is an id of the pool; this campaign takes the names that dpal labels export writes",
        "line 3: no record is called 'zzzz-zzzz-zzzz'",
        "was not asked for",
    ):
        assert words in str(caught.value)
    assert other not in str(caught.value)
    assert Campaign(tmp_path / "c").state().answers == {}


def test_ids_stay_where_they_are_declared_or_published(tmp_path: Path) -> None:
    pool = undeclared()
    waiting_campaign(tmp_path / "own", pool, ids_are_free_of_content=True).export_labels(tmp_path / "out", pool)
    assert {row[0] for row in table_of(tmp_path / "out/labels.csv")[1:]} <= set(pool.ids.tolist())
    # The declaration is recorded: it holds for everyone who opens the folder with the pool.
    assert Campaign(tmp_path / "own").state().created.ids_are_free_of_content
    assert small_pool().ids_are_free_of_content


def test_row_numbers_are_not_shown(tmp_path: Path) -> None:
    """A table is often sorted, by class or by date: its row numbers tell something."""
    pool = from_arrays(np.arange(96, dtype=np.float32).reshape(24, 4), classes=["no", "yes"])
    waiting_campaign(tmp_path / "c", pool).export_labels(tmp_path / "out", pool)
    assert not {row[0] for row in table_of(tmp_path / "out/labels.csv")[1:]} & set(pool.ids.tolist())


def test_data_may_move_but_the_declaration_stays() -> None:
    def hashed(**data: object) -> str:
        return settings_hash(checked_config({"data": {"source": "table", **data}}))

    assert hashed(options={"file": "here.csv"}) == hashed(options={"file": "there.csv"})
    assert hashed(ids_are_free_of_content=True) != hashed()
    assert hashed() == settings_hash(checked_config({}))
