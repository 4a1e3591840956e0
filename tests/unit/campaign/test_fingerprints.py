"""Records are what they were when the campaign was made, or nothing is charged; models belong to one charge."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pictures import write_png
from small_campaigns import create, linear_held_out, linear_model, linear_plan, linear_pool, small_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.files import digest
from dpal.campaign.fingerprints import fingerprints, text_fingerprints
from dpal.campaign.layout import CONTENTS
from dpal.data import Pool, from_arrays, from_image_folder, from_numpy_file, load_dataset
from dpal.data.records import Form, Positions, Records, TextRecords, Values
from dpal.errors import BadData, DamagedCampaign, RecordsChanged
from dpal.reports.campaign_report import write_report
from dpal.training import sources

KEY = b"k" * 32


def made(folder: Path, pool: Pool, **options: Any) -> Campaign:
    chosen = {"plan": linear_plan(), "model": linear_model(), "oracle": "simulated"} | options
    return Campaign.create(folder, pool=pool, **chosen)


def opened(folder: Path, pool: Pool, **options: Any) -> Campaign:
    return Campaign.open(folder, pool=pool, **({"model": linear_model()} | options))


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
    made(tmp_path / "c", pool)
    edited = values_of(pool)
    edited[7, 2] += 1e-6
    with pytest.raises(RecordsChanged, match=r"(?s)1 record.*'r07'.*dpal withdraw .* r07.*Nothing was charged"):
        opened(tmp_path / "c", changed(pool, edited))
    swapped = values_of(pool)
    swapped[[3, 4]] = swapped[[4, 3]]
    with pytest.raises(RecordsChanged, match=r"2 record.*'r03', 'r04'"):
        opened(tmp_path / "c", changed(pool, swapped))
    assert Campaign(tmp_path / "c").state().charges == ()
    assert opened(tmp_path / "c", pool).run().stage == "finished"


def test_sorted_rows_without_ids_are_refused_and_with_ids_change_nothing(tmp_path: Path) -> None:
    with_ids = linear_pool()
    without = from_arrays(values_of(with_ids), classes=["no", "yes"], labels=with_ids.labels)
    made(tmp_path / "rows", without)
    backwards = from_arrays(values_of(with_ids)[::-1].copy(), classes=["no", "yes"], labels=with_ids.labels)
    with pytest.raises(RecordsChanged, match=r"24 record.*row numbers"):
        opened(tmp_path / "rows", backwards)
    releases = []
    for name, pool in (("as it was", with_ids), ("sorted", with_ids.take(with_ids.ids[::-1]))):
        made(tmp_path / name, with_ids, seed=3, not_private=True)
        opened(tmp_path / name, pool).run()
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
    return made(tmp_path / "c", pool, model=picture_model(), oracle=lambda name, image: "yes" if name > "11" else "no")


def reopened(tmp_path: Path, pool: Pool | None = None) -> Campaign:
    pool = pictures(tmp_path / "scans") if pool is None else pool
    return opened(
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
            r"1 record.*can no longer be read.*'20.png'.*dpal withdraw",
        ),
        (lambda: (scans / "21.png").unlink(), r"1 record.*not in the data.*'21.png'.*dpal withdraw .* 21.png"),
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

    campaign = opened(tmp_path / "c", pictures(scans), model=picture_model(), oracle=expert)
    with pytest.raises(RecordsChanged, match=r"(?s)'13.png'.*Nothing was charged"):
        campaign.run()
    assert not any(isinstance(charge, ChargedTraining) for _, charge in campaign.state().charges)
    file.write_bytes(before)
    backup = shutil.copytree(scans, tmp_path / "backup")
    pool, records = counted(scans)
    campaign = opened(tmp_path / "c", pool, model=picture_model(), oracle=lambda name, image: "no")
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

    made(tmp_path / "c", pool())
    again = pool()
    records = Counted(again.records)
    opened(tmp_path / "c", replace(again, records=records))
    assert records.reads == 0
    values[11] *= 2
    np.save(tmp_path / "values.npy", values)
    with pytest.raises(RecordsChanged, match=r"1 record.*'11'.*row numbers"):
        opened(tmp_path / "c", pool())
    values[11] /= 2
    np.save(tmp_path / "values.npy", values)
    assert opened(tmp_path / "c", pool()).run().stage == "finished"


def test_people_are_shown_the_records_of_the_campaign_or_none(tmp_path: Path) -> None:
    pool = linear_pool()
    campaign = made(tmp_path / "c", pool, oracle="files")
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
    made(tmp_path / "c", linear_pool())
    made(tmp_path / "other", other)
    assert Campaign(tmp_path / "c").verify().holds
    shutil.copy(tmp_path / "other" / CONTENTS, tmp_path / "c" / CONTENTS)
    with pytest.raises(DamagedCampaign, match=CONTENTS):
        opened(tmp_path / "c", other)
    verification = Campaign(tmp_path / "c").verify()
    assert [check.what for check in verification.checks if not check.holds] == ["files"]
    (tmp_path / "c" / CONTENTS).unlink()
    with pytest.raises(DamagedCampaign, match=CONTENTS):
        opened(tmp_path / "c", linear_pool())


def test_fingerprints_are_released_nowhere(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c", linear_pool())
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


def test_a_held_out_set_that_shares_records_with_the_pool_is_refused(tmp_path: Path) -> None:
    pool, values = linear_pool(), values_of(linear_pool())
    copies = from_arrays(values[:5], classes=["no", "yes"], labels=pool.labels[:5], ids=list("abcde"))
    for evaluation, message in (
        (pool, "shares 24 id"),
        (copies, "contents of 5 record"),
        (replace(linear_held_out(), ids=np.asarray([f"r{n + 20:02d}" for n in range(40)])), "shares 4 id"),
    ):
        with pytest.raises(BadData, match=f"held-out set shares.*{message.removeprefix('shares ')}"):
            made(tmp_path / "c", pool, evaluation=evaluation, evaluation_is_public=True)
        assert not (tmp_path / "c").exists()
    made(tmp_path / "c", pool, evaluation=linear_held_out(), evaluation_is_public=True)
    for evaluation in (pool, copies):
        with pytest.raises(BadData, match="held-out set shares"):
            opened(tmp_path / "c", pool, evaluation=evaluation, evaluation_is_public=True)
    assert opened(tmp_path / "c", pool, evaluation=linear_held_out(), evaluation_is_public=True).run().stage


def test_row_numbers_say_nothing_about_who_is_held_out(tmp_path: Path) -> None:
    pool, other = linear_pool(), linear_held_out(10)
    rows = from_arrays(values_of(pool), classes=["no", "yes"], labels=pool.labels)
    held_out = from_arrays(values_of(other), classes=["no", "yes"], labels=other.labels)
    made(tmp_path / "c", rows, evaluation=held_out, evaluation_is_public=True)
    with pytest.raises(BadData, match="contents of 24 record"):
        made(tmp_path / "d", rows, evaluation=rows, evaluation_is_public=True)


def test_parts_of_a_published_dataset_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """Some have true duplicates between their parts; the same part is refused all the same."""
    train, test = small_pool(), small_pool("test", 60)
    assert train.published == test.published == load_dataset("digits").published == "digits"
    pixels = np.array(test.records.read(np.arange(60)))
    pixels[:3] = np.asarray(train.records.read(np.arange(3)))
    duplicates = replace(test, records=from_arrays(pixels, classes=10).records)
    options: dict[str, Any] = {"model": "small-cnn", "oracle": "simulated", "evaluation_is_public": True}
    campaign = create(tmp_path / "c")
    plan = campaign.plan
    Campaign.create(tmp_path / "d", plan=plan, pool=train, evaluation=duplicates, **options)
    for evaluation in (train, replace(duplicates, published=None)):
        with pytest.raises(BadData, match="held-out set shares"):
            Campaign.create(tmp_path / "e", plan=plan, pool=train, evaluation=evaluation, **options)


def test_held_out_images_are_compared_when_they_are_measured(tmp_path: Path) -> None:
    pool = pictures(tmp_path / "scans")
    for number in range(4):
        write_png(tmp_path / f"held/no/{number}.png", np.full((8, 8, 1), 200 + number, dtype=np.uint8))

    def held_out() -> Pool:
        return from_image_folder(tmp_path / "held", classes=["no", "yes"], labels_from_folders=True, size=8, channels=1)

    def expert(name: str, image: object) -> str:
        return "no"

    options: dict[str, Any] = {"model": picture_model(), "oracle": expert, "evaluation_is_public": True}
    made(tmp_path / "c", pool, evaluation=held_out(), **options)
    shutil.copy(tmp_path / "scans/07.png", tmp_path / "held/no/2.png")
    campaign = opened(tmp_path / "c", pool, evaluation=held_out(), **options)
    with pytest.raises(BadData, match="contents of 1 record"):
        campaign.run()
    assert campaign.state().evaluated == ()
    write_png(tmp_path / "held/no/2.png", np.full((8, 8, 1), 209, dtype=np.uint8))
    assert opened(tmp_path / "c", pool, evaluation=held_out(), **options).run().stage == "finished"


def test_held_out_texts_are_compared_as_they_are_written(tmp_path: Path) -> None:
    from dpal.campaign.fingerprints import Contents
    from dpal.campaign.held_out import require_held_out

    def texts(words: list[str], prefix: str) -> Pool:
        ids = np.asarray([f"{prefix}{number}" for number in range(len(words))])
        return Pool(name="notes", ids=ids, records=TextRecords([(word,) for word in words]), classes=("no", "yes"))

    pool = texts(["fever", "cough", "pain"], "p")
    contents = Contents(
        ids=tuple(pool.ids.tolist()),
        fingerprints=tuple(text_fingerprints(pool.records.texts, KEY)),
        stamps=("", "", ""),
        key=KEY,
    )
    require_held_out(texts(["rash", "none"], "h"), pool, contents)
    with pytest.raises(BadData, match="contents of 1 record"):
        require_held_out(texts(["rash", "cough"], "h"), pool, contents)


@pytest.mark.parametrize("average", [0.9, None])
def test_the_recorded_hash_is_that_of_the_exported_model(tmp_path: Path, average: float | None) -> None:
    campaign = made(tmp_path / "c", linear_pool(), training={"average": average})
    campaign.run()
    trained = campaign.state().trained
    assert len({each.export_sha256 for each in trained}) == len(trained) == 3
    for number in range(2):
        file = tmp_path / f"{number}.safetensors"
        card = opened(tmp_path / "c", linear_pool()).export_model(file)
        assert card["sha256"] == digest(file) == trained[-1].export_sha256
    assert not list((tmp_path / "c/checkpoints").glob(".*"))


def test_a_checkpoint_tells_nothing_but_weights(tmp_path: Path) -> None:
    from safetensors import safe_open

    campaign = made(tmp_path / "c", linear_pool())
    campaign.run()
    for each in campaign.state().trained:
        with safe_open(tmp_path / "c" / each.file, framework="np") as file:
            assert not file.metadata()
