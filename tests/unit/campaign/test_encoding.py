"""Campaigns whose model reads features: computed once, checked, never of a changed or withdrawn record."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_campaigns import linear_pool, small_plan, small_pool
from small_pools import text_pool
from synthetic_pictures import album
from tiny_bert import write_tiny_bert
from tiny_encoder import TinyEncoder, encoded_campaign, options

from dpal.campaign.campaign import Campaign
from dpal.campaign.lock import only_writer
from dpal.data import from_arrays, from_image_folder
from dpal.errors import BadData, CampaignBusy, InvalidArgument, RecordsChanged
from dpal.models.encoders import as_encoder
from dpal.models.features import Features

FILES = ("features.npy", "features.tags", "held-out-features.npy", "held-out-features.tags")


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoded") / "campaign"
    encoded_campaign(folder)
    return folder


@pytest.fixture
def folder(created: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(created, tmp_path / "campaign"))


def features_in(folder: Path, name: str = "features.npy") -> np.ndarray:
    return np.load(folder / name)


def expected(pool: object = None) -> np.ndarray:
    records = (small_pool() if pool is None else pool).records  # type: ignore[attr-defined]
    return as_encoder(TinyEncoder()).encode(records.read(np.arange(len(records)))).astype(np.float16)


def test_every_record_is_encoded_when_the_campaign_is_created(folder: Path) -> None:
    assert np.array_equal(features_in(folder), expected())
    assert np.array_equal(features_in(folder, "held-out-features.npy"), expected(small_pool("test", 60)))
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in FILES)


def test_it_runs_to_its_end_on_features_alone(folder: Path) -> None:
    module = TinyEncoder()
    campaign = Campaign.open(folder, **options(module))
    calls = module.calls
    status = campaign.run()
    assert status.stage == "finished"
    # The network was tried on synthetic images when it was given, and saw no record again.
    assert module.calls == calls
    assert {trained.engine for trained in campaign.state().trained} == {"fused"}
    assert len(status.metrics) == 3
    assert campaign.verify().holds
    # People who label still get images.
    assert campaign.parts.pool.records.form[""].shape == small_pool().records.form[""].shape


def test_damaged_features_are_computed_again_and_no_others(folder: Path) -> None:
    path = folder / "features.npy"
    content = bytearray(path.read_bytes())
    content[-5] ^= 8
    path.write_bytes(content)
    module = TinyEncoder()
    campaign = Campaign.open(folder, **options(module))
    assert np.array_equal(features_in(folder), expected())
    fresh = TinyEncoder()
    as_encoder(fresh)
    assert module.calls == fresh.calls + 1
    assert campaign.run().stage == "finished"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_computed_again(folder: Path, name: str) -> None:
    (folder / name).unlink()
    Campaign.open(folder, **options())
    assert np.array_equal(features_in(folder), expected())
    assert np.array_equal(features_in(folder, "held-out-features.npy"), expected(small_pool("test", 60)))


def test_a_file_of_another_campaign_is_computed_again(folder: Path, tmp_path: Path) -> None:
    encoded_campaign(tmp_path / "other", model=Features(encoder=TinyEncoder(2.0)), seed=8)
    for name in FILES:
        shutil.copy(tmp_path / "other" / name, folder / name)
    Campaign.open(folder, **options())
    assert np.array_equal(features_in(folder), expected())


def test_another_encoder_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"the encoder is 'tiny_encoder:TinyEncoder .*as when the campaign"):
        Campaign.open(folder, **options(TinyEncoder(1.5)))
    with pytest.raises(InvalidArgument, match="the encoder is None"):
        Campaign.open(folder, **(options() | {"model": "small-cnn"}))


def test_withdrawn_records_leave_nothing_and_the_others_stay(folder: Path) -> None:
    gone = small_pool().ids[[3, 70]].tolist()
    Campaign(folder).withdraw(gone)
    left = small_pool().take([name for name in small_pool().ids.tolist() if name not in gone])
    # Their records may be deleted.
    campaign = Campaign.open(folder, **options(pool=left))
    stored = features_in(folder)
    assert not stored[[3, 70]].any()
    kept = np.setdiff1d(np.arange(150), [3, 70])
    assert np.array_equal(stored[kept], expected()[kept])
    assert len(campaign.parts.inputs) == 148
    assert np.array_equal(campaign.parts.inputs.read(np.array([3, 147])), expected()[[4, 149]])
    assert campaign.run().stage == "finished"


def test_a_record_is_withdrawn_while_the_campaign_is_open(folder: Path) -> None:
    campaign = Campaign.open(folder, **options())
    campaign.withdraw([str(small_pool().ids[5])])
    assert campaign.run().stage == "finished"
    assert not features_in(folder)[5].any()
    assert len(campaign.parts.inputs) == 149


def test_a_pool_in_another_order_gets_the_campaigns_rows(folder: Path) -> None:
    turned = small_pool().take(small_pool().ids[::-1])
    campaign = Campaign.open(folder, **options(pool=turned))
    assert np.array_equal(campaign.parts.inputs.read(np.arange(150)), expected())


def test_only_one_process_encodes(folder: Path) -> None:
    (folder / "features.tags").unlink()
    with only_writer(folder), pytest.raises(CampaignBusy, match="is writing to the campaign"):
        Campaign.open(folder, **options())
    Campaign.open(folder, **options())
    # Once all features are there, others may open it while one writes.
    with only_writer(folder):
        Campaign.open(folder, **options())


def images_in(folder: Path, count: int = 24) -> Path:
    folder.mkdir()
    for number, picture in enumerate(album(count, side=20)):
        Image.fromarray(picture.transpose(1, 2, 0)).save(folder / f"{number:02d}.png")
    return folder


def image_campaign(folder: Path, images: Path, **changed: object) -> Campaign:
    pool = from_image_folder(images, classes=["no", "yes"], size=20, channels=3)
    plan = small_plan(pool_size=24, initial_size=8, query_sizes=(5, 4), batch_size=4, selection="random")
    chosen = options(pool=pool, held_out=False) | {"plan": plan, "oracle": "files"} | changed
    return Campaign.create(folder, **chosen)


def test_an_image_that_changed_is_noticed_although_the_model_does_not_read_it(tmp_path: Path) -> None:
    images = images_in(tmp_path / "images")
    image_campaign(tmp_path / "campaign", images)
    Image.fromarray(255 - np.asarray(Image.open(images / "07.png"))).save(images / "07.png")
    pool = from_image_folder(images, classes=["no", "yes"], size=20, channels=3)
    with pytest.raises(RecordsChanged, match=r"1 record\(s\) are not as they were.*'07\.png'"):
        Campaign.open(tmp_path / "campaign", **options(pool=pool, held_out=False))
    # Nor is a changed image encoded, where features are missing.
    (tmp_path / "campaign" / "features.npy").unlink()
    with pytest.raises(RecordsChanged, match="07"):
        Campaign.open(tmp_path / "campaign", **options(pool=pool, held_out=False))


def test_a_cache_saves_encoding_the_same_records_twice(tmp_path: Path) -> None:
    cache = {"training": {"features_cache": str(tmp_path / "cache")}}
    first, second, other = TinyEncoder(), TinyEncoder(), TinyEncoder(3.0)
    for name, module in (("first", first), ("second", second), ("other", other)):
        encoded_campaign(tmp_path / name, model=Features(encoder=module), **cache)
    # The second one was only tried on synthetic images, of which one has the pool's form.
    assert first.calls > second.calls + 200
    assert other.calls == first.calls
    assert np.array_equal(features_in(tmp_path / "first"), features_in(tmp_path / "second"))
    assert not np.array_equal(features_in(tmp_path / "first"), features_in(tmp_path / "other"))
    # Some of the same records, in another order.
    subset = small_pool().take(small_pool().ids[99:19:-1])
    third = TinyEncoder()
    plan = small_plan(pool_size=80, initial_size=20, query_sizes=(10, 10))
    encoded_campaign(tmp_path / "third", model=Features(encoder=third), pool=subset, plan=plan, **cache)
    assert third.calls == second.calls
    assert np.array_equal(features_in(tmp_path / "third"), expected()[99:19:-1])


def test_the_place_of_the_cache_may_change(tmp_path: Path) -> None:
    campaign = encoded_campaign(tmp_path / "campaign", training={"features_cache": str(tmp_path / "cache")})
    text = (campaign.folder / "campaign.yaml").read_text()
    (campaign.folder / "campaign.yaml").write_text(text.replace(str(tmp_path / "cache"), str(tmp_path / "elsewhere")))
    (campaign.folder / "features.npy").unlink()
    Campaign.open(campaign.folder, **options())
    assert (tmp_path / "elsewhere" / "features.db").is_file()


def test_a_held_out_set_with_a_record_of_the_pool_is_refused(folder: Path, tmp_path: Path) -> None:
    shared = small_pool().take(small_pool().ids[:60])
    renamed = replace(shared, ids=np.asarray([f"x{number}" for number in range(60)]), published=None)
    with pytest.raises(BadData, match=r"contents of 60 record\(s\)"):
        encoded_campaign(tmp_path / "new", evaluation=renamed)
    with pytest.raises(BadData, match=r"contents of 60 record\(s\)"):
        Campaign.open(folder, **(options() | {"evaluation": renamed}))


def test_another_held_out_set_is_encoded_anew(folder: Path) -> None:
    other = small_pool("test", 80)
    Campaign.open(folder, **(options() | {"evaluation": other}))
    assert np.array_equal(features_in(folder, "held-out-features.npy"), expected(other))


def test_records_that_the_encoder_cannot_read_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"reads images of 1 or 3 channels.*records of the shape \(4,\)"):
        encoded_campaign(tmp_path / "new", pool=linear_pool(150), evaluation=None, plan=small_plan())
    texts = text_pool([("no fever",)] * 3)
    with pytest.raises(InvalidArgument, match="one that reads texts"):
        encoded_campaign(
            tmp_path / "new",
            pool=texts,
            evaluation=None,
            plan=small_plan(pool_size=3, initial_size=2, query_sizes=(), batch_size=1),
        )
    assert not (tmp_path / "new").exists()


def test_texts_are_encoded_as_they_are(tmp_path: Path) -> None:
    words = ["fever", "cough", "no", "a", "man", "runs", "sleeps", "."]
    rng = np.random.default_rng(0)
    texts = [(" ".join(rng.choice(words, 5)),) for _ in range(24)]
    pool = text_pool(texts)
    bert = write_tiny_bert(tmp_path / "bert")
    model = Features(encoder=f"transformers:{bert}", max_length=16)
    plan = small_plan(pool_size=24, initial_size=8, query_sizes=(5, 4), batch_size=4, selection="random")
    campaign = Campaign.create(tmp_path / "campaign", plan=plan, pool=pool, model=model, oracle="simulated")
    assert features_in(campaign.folder).shape == (24, 32)
    assert campaign.run().stage == "finished"
    changed = text_pool([("no cough",), *texts[1:]])
    with pytest.raises(RecordsChanged, match="1 record"):
        Campaign.open(campaign.folder, pool=changed, model=model)


def test_what_is_said_while_records_are_encoded(folder: Path) -> None:
    said: list[str] = []
    Campaign.open(folder, tell=said.append, **options())
    assert said == []
    (folder / "features.npy").unlink()
    Campaign.open(folder, tell=said.append, **options())
    assert said == [
        "encoding with tiny_encoder:TinyEncoder: 150 records, once; the features stay in the campaign's folder"
    ]


def test_foreign_code_is_named_and_dpals_is_not(folder: Path, tmp_path: Path) -> None:
    assert Campaign(folder).state().created.foreign_code == ("tiny_encoder:TinyEncoder",)
    pool = from_arrays(album(24, 8), classes=["no", "yes"])
    plan = small_plan(pool_size=24, initial_size=8, query_sizes=(), batch_size=4)
    campaign = Campaign.create(tmp_path / "own", plan=plan, pool=pool, model=Features(side=32))
    assert campaign.state().created.foreign_code == ()
