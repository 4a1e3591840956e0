"""Public records in place of the pool: which ones, in two parts that share nothing, as the model reads them."""

from pathlib import Path

import numpy as np
import pytest
from synthetic_pictures import album
from tiny_encoder import TinyEncoder

from dpal.campaign.config import CampaignConfig, checked_config
from dpal.campaign.parts import Parts, parts_of
from dpal.data import Pool, from_arrays, from_table, with_units
from dpal.errors import BadData, DpalError, InvalidArgument
from dpal.models.features import Features
from dpal.rehearsal.stand_ins import HELD_OUT, StandIn, stand_in_for


def pictures(count: int, *, side: int = 16, channels: int = 3, labelled: bool = True) -> Pool:
    labels = np.arange(count) % 2 if labelled else None
    return from_arrays(album(count, side, channels), classes=["a", "b"], labels=labels)


def parts(pool: Pool, held_out: Pool | None = None, *, encoder: bool = False) -> tuple[CampaignConfig, Parts]:
    document: dict[str, object] = {"plan": {"target_epsilon": 8}}
    if not encoder:
        document["model"] = {"name": "small-cnn"}
    config = checked_config(document)
    model = Features(encoder=TinyEncoder()) if encoder else None
    return config, parts_of(config, pool=pool, model=model, evaluation=held_out)


def stand_in(pool: Pool, held_out: Pool | None = None, *, on: str | None = None, encoder: bool = False) -> StandIn:
    config, made = parts(pool, held_out, encoder=encoder)
    return stand_in_for(config, made, on, base=Path.cwd(), tell=lambda words: None)


def contents(pool: Pool) -> set[bytes]:
    rows = np.asarray(pool.records.read(np.arange(len(pool))))
    return {row.tobytes() for row in rows}


def test_a_public_held_out_set_is_the_nearest_and_its_halves_share_no_content() -> None:
    twice = from_arrays(np.concatenate([album(30, 16)] * 2), classes=["a", "b"], labels=np.arange(60) % 2)
    made = stand_in(pictures(100, labelled=False), twice)
    assert made.is_like_the_pool
    assert "half of the public held-out set" in made.name
    assert len(made.pool) + len(made.test) == 30
    assert not contents(made.pool) & contents(made.test)


def test_nobody_is_in_both_halves_of_a_held_out_set_with_units() -> None:
    whose = [f"p{row // 7}" for row in range(60)]
    held_out = with_units(pictures(60), whose, name="patient", records=7)
    made = stand_in(with_units(pictures(100), [f"q{row // 2}" for row in range(100)], name="patient"), held_out)
    # Everyone whole, about half of the records on each side.
    sides = [set(half.units.names) for half in (made.pool, made.test) if half.units is not None]
    assert len(sides) == 2
    assert not sides[0] & sides[1]
    assert sides[0] | sides[1] == set(whose)
    assert abs(len(made.pool) - len(made.test)) <= 7
    # A stand-in fills a pool of any size, and each of its records is somebody by itself.
    assert made.filling(100, seed=1).units is None
    with pytest.raises(BadData, match="are of one patient"):
        stand_in(pictures(50), with_units(pictures(30), ["p"] * 30, name="patient"))


def test_the_pool_itself_is_never_read() -> None:
    private = pictures(100)

    def refuse(*_: object) -> None:
        raise AssertionError("a private record was read")

    object.__setattr__(private, "records", _Unread(private.records, refuse))
    made = stand_in(private, pictures(40))
    assert len(made.filling(100, 1)) == 100


class _Unread:
    def __init__(self, records: object, refuse: object) -> None:
        self._records, self.read = records, refuse

    def __len__(self) -> int:
        return len(self._records)  # pyright: ignore[reportArgumentType]

    @property
    def form(self) -> object:
        return self._records.form  # pyright: ignore[reportAttributeAccessIssue]


def test_without_one_digits_take_the_form_of_the_pool() -> None:
    made = stand_in(pictures(50, side=20))
    assert made.name == "the public dataset digits"
    assert not made.is_like_the_pool
    assert made.pool.records.form[""].shape == (3, 20, 20)
    assert (len(made.pool), len(made.test)) == (1437, 360)
    pixels = np.asarray(made.pool.records.read(np.arange(5)))
    assert np.array_equal(pixels[:, 0], pixels[:, 2])
    assert pixels.max() > 200


def test_an_encoder_reads_the_stand_in_once_and_copies_are_mixed() -> None:
    made = stand_in(pictures(50), pictures(40), encoder=True)
    assert made.pool.records.form[""].shape == (16,)
    filled = made.filling(100, seed=1)
    rows = np.asarray(filled.records.read(np.arange(100)))
    # Exact copies would be 20; a few pairs of parents occur twice.
    assert len(np.unique(rows, axis=0)) > 70
    assert np.bincount(np.asarray(filled.labels)).min() > 30


def test_a_pool_smaller_than_the_stand_in_takes_a_part_of_it() -> None:
    made = stand_in(pictures(50), pictures(40))
    assert len(contents(made.filling(7, seed=1))) == 7


def test_texts_get_synthetic_features(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("note\n" + "fever\n" * 50)
    texts = from_table(tmp_path / "notes.csv", text="note", classes=["a", "b"])
    config = checked_config({"plan": {"target_epsilon": 8}, "model": {"name": "features"}})
    made = stand_in_for(config, parts_of(config, pool=texts), None, base=tmp_path, tell=lambda words: None)
    assert "synthetic features" in made.name
    assert made.pool.records.form[""].shape == (768,)


def test_a_file_with_public_data_of_ones_own(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", album(60, 16))
    np.save(tmp_path / "labels.npy", np.arange(60) % 3)
    (tmp_path / "public.yaml").write_text(
        "data: {source: numpy, options: {file: images.npy, labels: labels.npy, classes: [x, y, z]}}\n"
    )
    made = stand_in(pictures(50), on=str(tmp_path / "public.yaml"))
    assert made.pool.classes == ("x", "y", "z")
    assert (len(made.pool), len(made.test)) == (30, 30)
    assert "public.yaml" in made.name


def test_what_cannot_stand_in_is_refused_in_words() -> None:
    with pytest.raises(InvalidArgument, match="no public held-out set"):
        stand_in(pictures(50), on=HELD_OUT)
    with pytest.raises(InvalidArgument, match="held-out, synthetic, a YAML file, or one of digits"):
        stand_in(pictures(50), on="imagenet")
    with pytest.raises(InvalidArgument, match="synthetic features are for encoders"):
        stand_in(pictures(50), on="synthetic")
    with pytest.raises(BadData, match="at least 20"):
        stand_in(pictures(50), pictures(10))
    rows = from_arrays(np.ones((30, 5), dtype=np.float32), classes=["a", "b"])
    config = checked_config({"plan": {"target_epsilon": 8}, "model": {"name": "torch.nn:Identity"}})
    with pytest.raises(DpalError, match="the same form"):
        stand_in_for(config, parts_of(config, pool=rows), None, base=Path.cwd(), tell=lambda words: None)
