"""A held-out set shares no record with the pool, by id or by contents."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pictures import write_png
from small_campaigns import create, linear_campaign, linear_held_out, linear_opened, linear_pool, small_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.fingerprints import text_fingerprints
from dpal.data import Pool, from_arrays, from_image_folder, load_dataset
from dpal.data.records import TextRecords
from dpal.errors import BadData

KEY = b"k" * 32


def values_of(pool: Pool) -> np.ndarray:
    return np.array(pool.records.read(np.arange(len(pool))))


def pictures(folder: Path, count: int = 24) -> Pool:
    """A folder of grey images of one size in bytes: only their contents tell them apart."""
    if not folder.exists():
        for number in range(count):
            write_png(folder / f"{number:02d}.png", np.full((8, 8, 1), 3 * number, dtype=np.uint8))
    return from_image_folder(folder, classes=["no", "yes"], size=8, channels=1)


def picture_model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))


def test_a_held_out_set_that_shares_records_with_the_pool_is_refused(tmp_path: Path) -> None:
    pool, values = linear_pool(), values_of(linear_pool())
    copies = from_arrays(values[:5], classes=["no", "yes"], labels=pool.labels[:5], ids=list("abcde"))
    for evaluation, message in (
        (pool, "shares 24 id"),
        (copies, "contents of 5 record"),
        (replace(linear_held_out(), ids=np.asarray([f"r{n + 20:02d}" for n in range(40)])), "shares 4 id"),
    ):
        with pytest.raises(BadData, match=f"held-out set shares.*{message.removeprefix('shares ')}"):
            linear_campaign(tmp_path / "c", pool, evaluation=evaluation, evaluation_is_public=True)
        assert not (tmp_path / "c").exists()
    linear_campaign(tmp_path / "c", pool, evaluation=linear_held_out(), evaluation_is_public=True)
    for evaluation in (pool, copies):
        with pytest.raises(BadData, match="held-out set shares"):
            linear_opened(tmp_path / "c", pool, evaluation=evaluation, evaluation_is_public=True)
    assert (
        linear_opened(tmp_path / "c", pool, evaluation=linear_held_out(), evaluation_is_public=True)
        .run(go_on=True)
        .stage
    )


def test_row_numbers_say_nothing_about_who_is_held_out(tmp_path: Path) -> None:
    pool, other = linear_pool(), linear_held_out(10)
    rows = from_arrays(values_of(pool), classes=["no", "yes"], labels=pool.labels)
    held_out = from_arrays(values_of(other), classes=["no", "yes"], labels=other.labels)
    linear_campaign(tmp_path / "c", rows, evaluation=held_out, evaluation_is_public=True)
    numbered = replace(pool, ids=rows.ids)
    linear_campaign(tmp_path / "b", numbered, evaluation=held_out, evaluation_is_public=True)
    with pytest.raises(BadData, match="contents of 24 record"):
        linear_campaign(tmp_path / "d", rows, evaluation=rows, evaluation_is_public=True)


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
    linear_campaign(tmp_path / "c", pool, evaluation=held_out(), **options)
    shutil.copy(tmp_path / "scans/07.png", tmp_path / "held/no/2.png")
    campaign = linear_opened(tmp_path / "c", pool, evaluation=held_out(), **options)
    with pytest.raises(BadData, match="contents of 1 record"):
        campaign.run(go_on=True)
    assert campaign.state().evaluated == ()
    write_png(tmp_path / "held/no/2.png", np.full((8, 8, 1), 209, dtype=np.uint8))
    assert linear_opened(tmp_path / "c", pool, evaluation=held_out(), **options).run(go_on=True).stage == "finished"


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
