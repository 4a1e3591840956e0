"""Records are as they were when the campaign was created, or nothing is charged."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import write_png
from small_campaigns import linear_campaign, linear_opened, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.fingerprints import fingerprints, text_fingerprints
from dpal.campaign.layout import CONTENTS
from dpal.data import Pool, from_arrays, from_image_folder, from_numpy_file
from dpal.data.records import Form, Positions, Records, Values
from dpal.errors import DamagedCampaign, RecordsChanged
from dpal.reports.campaign_report import write_report
from dpal.training import sources

KEY = b"k" * 32


def changed(pool: Pool, values: np.ndarray) -> Pool:
    return replace(pool, records=from_arrays(values, classes=2).records)


def values_of(pool: Pool) -> np.ndarray:
    return np.array(pool.records.read(np.arange(len(pool))))


def test_no_two_records_have_one_fingerprint() -> None:
    rows = np.arange(6, dtype=np.uint8).reshape(2, 3)
    different = [
        *fingerprints(rows, KEY),
        *fingerprints(rows.astype(np.int8), KEY),
        *fingerprints(rows.reshape(2, 3, 1), KEY),
        *fingerprints({"a": rows}, KEY),
        *fingerprints({"a": rows, "b": rows}, KEY),
        *fingerprints(rows, b"l" * 32),
        *text_fingerprints([("ab", "c"), ("a", "bc"), ("abc",), ("abc", "")], KEY),
    ]
    assert len(set(different)) == len(different)
    # How an array lies in memory is not part of its contents.
    assert fingerprints(np.asfortranarray(rows), KEY) == fingerprints(rows, KEY)


def test_edited_and_swapped_rows_are_refused_by_id(tmp_path: Path) -> None:
    pool = linear_pool()
    linear_campaign(tmp_path / "c", pool)
    edited = values_of(pool)
    edited[7, 2] += 1e-6
    with pytest.raises(RecordsChanged, match=r"(?s)1 record.*'r07'.*dpal withdraw .* r07.*Nothing was charged"):
        linear_opened(tmp_path / "c", changed(pool, edited))
    swapped = values_of(pool)
    swapped[[3, 4]] = swapped[[4, 3]]
    with pytest.raises(RecordsChanged, match=r"2 record.*'r03', 'r04'"):
        linear_opened(tmp_path / "c", changed(pool, swapped))
    assert Campaign(tmp_path / "c").state().charges == ()
    assert linear_opened(tmp_path / "c", pool).run().stage == "finished"


def test_sorted_rows_without_ids_are_refused_and_with_ids_change_nothing(tmp_path: Path) -> None:
    with_ids = linear_pool()
    without = from_arrays(values_of(with_ids), classes=["no", "yes"], labels=with_ids.labels)
    linear_campaign(tmp_path / "rows", without)
    backwards = from_arrays(values_of(with_ids)[::-1].copy(), classes=["no", "yes"], labels=with_ids.labels)
    with pytest.raises(RecordsChanged, match=r"24 record.*row numbers"):
        linear_opened(tmp_path / "rows", backwards)
    releases = []
    for name, pool in (("as it was", with_ids), ("sorted", with_ids.take(with_ids.ids[::-1]))):
        linear_campaign(tmp_path / name, with_ids, seed=3, not_private=True)
        linear_opened(tmp_path / name, pool).run()
        state = Campaign(tmp_path / name).state()
        releases.append(([each.to_label for each in state.selected], [each.sha256 for each in state.trained]))
    assert releases[0] == releases[1]


class Counted(Records):
    """Real records that count how often each is read."""

    def __init__(self, records: Records) -> None:
        self.records, self.reads = records, 0

    def __len__(self) -> int:
        return len(self.records)

    @property
    def form(self) -> Form:
        return self.records.form

    def read(self, positions: Positions) -> Values:
        self.reads += len(positions)
        return self.records.read(positions)

    def stamps(self, positions: Positions) -> list[str]:
        return self.records.stamps(positions)


def pictures(folder: Path, count: int = 24) -> Pool:
    """A folder of grey images of one size in bytes: only their contents tell them apart."""
    if not folder.exists():
        for number in range(count):
            write_png(folder / f"{number:02d}.png", np.full((8, 8, 1), 3 * number, dtype=np.uint8))
    return from_image_folder(folder, classes=["no", "yes"], size=8, channels=1)


def counted(folder: Path) -> tuple[Pool, Counted]:
    pool = pictures(folder)
    records = Counted(pool.records)
    return replace(pool, records=records), records


def picture_model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))


def picture_campaign(tmp_path: Path) -> Campaign:
    pool = pictures(tmp_path / "scans")
    return linear_campaign(
        tmp_path / "c", pool, model=picture_model(), oracle=lambda name, image: "yes" if name > "11" else "no"
    )


def reopened(tmp_path: Path, pool: Pool | None = None) -> Campaign:
    pool = pictures(tmp_path / "scans") if pool is None else pool
    return linear_opened(
        tmp_path / "c", pool, model=picture_model(), oracle=lambda name, image: "yes" if name > "11" else "no"
    )


def test_opening_reads_no_file_whose_size_and_time_are_the_same(tmp_path: Path) -> None:
    picture_campaign(tmp_path)
    pool, records = counted(tmp_path / "scans")
    reopened(tmp_path, pool)
    assert records.reads == 0
    # A copied file has a new time: it is read once, found to be the same, and not read again.
    for name in ("03.png", "05.png"):
        os.utime(tmp_path / "scans" / name, ns=(1, 1))
    reopened(tmp_path, pool)
    assert records.reads == 2
    reopened(tmp_path, pool)
    assert records.reads == 2


def test_swapped_replaced_and_broken_images_are_refused_by_id(tmp_path: Path) -> None:
    picture_campaign(tmp_path)
    scans, backup = tmp_path / "scans", tmp_path / "backup"
    shutil.copytree(scans, backup)

    def swap() -> None:
        # By name, so that sizes and times of the contents stay as they were.
        (scans / "02.png").rename(scans / "x")
        (scans / "04.png").rename(scans / "02.png")
        (scans / "x").rename(scans / "04.png")

    for harm, message in (
        (swap, r"2 record.*not as they were.*'02.png', '04.png'"),
        (lambda: shutil.copy2(scans / "01.png", scans / "09.png"), r"1 record.*not as they were.*'09.png'"),
        (
            lambda: (scans / "20.png").write_bytes(b"not an image"),
            r"1 record.*no longer be read.*'20.png'.*dpal withdraw",
        ),
        (lambda: (scans / "21.png").unlink(), r"1 record.*no longer in the data.*'21.png'.*dpal withdraw .* 21.png"),
    ):
        harm()
        with pytest.raises(RecordsChanged, match=f"(?s){message}.*Nothing was charged"):
            reopened(tmp_path)
        shutil.rmtree(scans)
        shutil.copytree(backup, scans)
    assert Campaign(tmp_path / "c").state().charges == ()
    assert reopened(tmp_path).run().stage == "finished"


def test_streamed_records_are_compared_before_the_charge_and_at_every_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No record is kept in memory.
    monkeypatch.setattr(sources, "_SHARE_OF_MEMORY", 0.0)
    picture_campaign(tmp_path)
    scans, file = tmp_path / "scans", tmp_path / "scans/13.png"
    before = file.read_bytes()

    def expert(name: str, image: object) -> str:
        shutil.copy2(scans / "01.png", file)
        return "yes" if name > "11" else "no"

    campaign = linear_opened(tmp_path / "c", pictures(scans), model=picture_model(), oracle=expert)
    with pytest.raises(RecordsChanged, match=r"(?s)'13.png'.*Nothing was charged"):
        campaign.run()
    assert not any(isinstance(charge, ChargedTraining) for _, charge in campaign.state().charges)
    file.write_bytes(before)
    backup = shutil.copytree(scans, tmp_path / "backup")
    pool, records = counted(scans)
    campaign = linear_opened(tmp_path / "c", pool, model=picture_model(), oracle=lambda name, image: "no")
    original = records.read

    def read(positions: Positions) -> Values:
        # Changed while the phase trains.
        if any(isinstance(charge, ChargedTraining) for _, charge in campaign.state().charges):
            write_png(scans / str(pool.ids[positions[0]]), np.full((8, 8, 1), 255, dtype=np.uint8))
        return original(positions)

    monkeypatch.setattr(records, "read", read)
    with pytest.raises(RecordsChanged, match=r"(?s)1 record.*stays charged"):
        campaign.run()
    monkeypatch.undo()
    shutil.rmtree(scans)
    shutil.copytree(backup, scans)
    assert reopened(tmp_path).run().stage == "finished"
    assert Campaign(tmp_path / "c").verify().holds


def test_a_memory_map_is_compared_when_its_file_has_changed(tmp_path: Path) -> None:
    values = values_of(linear_pool())
    np.save(tmp_path / "values.npy", values)
    np.save(tmp_path / "labels.npy", linear_pool().labels)

    def pool() -> Pool:
        return from_numpy_file(tmp_path / "values.npy", labels=tmp_path / "labels.npy", classes=["no", "yes"])

    linear_campaign(tmp_path / "c", pool())
    again = pool()
    records = Counted(again.records)
    linear_opened(tmp_path / "c", replace(again, records=records))
    assert records.reads == 0
    values[11] *= 2
    np.save(tmp_path / "values.npy", values)
    with pytest.raises(RecordsChanged, match=r"1 record.*'11'.*row numbers"):
        linear_opened(tmp_path / "c", pool())
    values[11] /= 2
    np.save(tmp_path / "values.npy", values)
    assert linear_opened(tmp_path / "c", pool()).run().stage == "finished"


def test_people_are_shown_the_records_of_the_campaign_or_none(tmp_path: Path) -> None:
    pool = linear_pool()
    campaign = linear_campaign(tmp_path / "c", pool, oracle="files")
    campaign.run()
    asked, others = campaign.state().groups[0], set(pool.ids.tolist()) - set(campaign.state().groups[0])
    for name, refused in ((asked[0], True), (min(others), False)):
        edited = values_of(pool)
        edited[pool.positions([name])] += 1
        if refused:
            with pytest.raises(RecordsChanged, match=name):
                campaign.export_labels(tmp_path / "out", changed(pool, edited))
            assert not (tmp_path / "out").exists()
        else:
            assert campaign.export_labels(tmp_path / "out", changed(pool, edited)) == len(asked)


def test_an_exchanged_file_of_contents_is_noticed(tmp_path: Path) -> None:
    other = changed(linear_pool(), values_of(linear_pool()) + 1)
    linear_campaign(tmp_path / "c", linear_pool())
    linear_campaign(tmp_path / "other", other)
    assert Campaign(tmp_path / "c").verify().holds
    shutil.copy(tmp_path / "other" / CONTENTS, tmp_path / "c" / CONTENTS)
    with pytest.raises(DamagedCampaign, match=CONTENTS):
        linear_opened(tmp_path / "c", other)
    verification = Campaign(tmp_path / "c").verify()
    assert [check.what for check in verification.checks if not check.holds] == ["files"]
    (tmp_path / "c" / CONTENTS).unlink()
    with pytest.raises(DamagedCampaign, match=CONTENTS):
        linear_opened(tmp_path / "c", linear_pool())


def test_fingerprints_are_released_nowhere(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c", linear_pool())
    campaign.run()
    contents = campaign.contents()
    write_report(tmp_path / "c", tmp_path / "report.html")
    card = campaign.export_model(tmp_path / "model.safetensors")
    shown = [repr(contents), repr(campaign.state()), json.dumps(card), json.dumps(campaign.ledger())]
    shown += [path.read_text() for path in (tmp_path / "report.html", tmp_path / "report.json")]
    for fingerprint in (*contents.fingerprints, contents.key):
        assert not any(fingerprint.hex() in text or repr(fingerprint) in text for text in shown)
    released = [tmp_path / "model.safetensors", *(tmp_path / "c/checkpoints").iterdir()]
    assert not any(fingerprint in path.read_bytes() for fingerprint in contents.fingerprints for path in released)


def test_a_zeroed_block_of_the_contents_is_damage_in_words(tmp_path: Path) -> None:
    """Wherever it lies: SQLite reads some of such files and finds cells that are empty."""
    folder = linear_campaign(tmp_path / "c").folder
    path, whole = folder / CONTENTS, (folder / CONTENTS).read_bytes()
    refused = 0
    for start in range(0, len(whole), 512):
        content = bytearray(whole)
        content[start : start + 512] = bytes(512)
        path.write_bytes(content)
        try:
            Campaign(folder).contents()
        except DamagedCampaign:
            refused += 1
    assert refused >= 5
