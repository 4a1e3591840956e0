"""Encoders by name, by import path, from the library transformers, and any torch module."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from synthetic_pictures import album
from tiny_bert import write_tiny_bert
from torch import Tensor, nn

from dpal.errors import DpalError, InvalidArgument, MixesRecords
from dpal.models.encoder import IMAGES, TEXTS, Encoder
from dpal.models.encoders import DEFAULT_ENCODERS, ENCODERS, as_encoder, encoder_named

HERE = "stand_ins_of_encoders"


class Corners(nn.Module):
    """The mean of each channel's upper left corner."""

    side = 16
    trained_on = "nothing at all"

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, images: Tensor) -> Tensor:
        return images[:, :, :4, :4].mean((2, 3)) * self.weight


class Maps(Corners):
    def forward(self, images: Tensor) -> Tensor:
        return images * self.weight.reshape(1, 3, 1, 1)


class Mixing(Corners):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) - super().forward(images).mean(0)


class Remembering(Corners):
    """A running mean that hardly moves: over three images nothing is seen, over a pool everything is."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, images: Tensor) -> Tensor:
        self.seen += 1e-5 * (images.mean((0, 2, 3)) - self.seen)
        return super().forward(images)


class RememberingUnseen(Corners):
    """The same, where no buffer shows it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0.0

    def forward(self, images: Tensor) -> Tensor:
        self.seen += 1e-5 * float(images.mean())
        return super().forward(images) - self.seen


class Stashing(Corners):
    """Puts its input aside while it works, as many networks do: two threads in one such network get mixed up."""

    def forward(self, images: Tensor) -> Tensor:
        self.given = images
        time.sleep(0.002)
        return super().forward(self.given)


class OwnEncoder(Encoder):
    """The same as an encoder of one's own."""

    name, reads, blocks = "own", IMAGES, (3,)
    trained_on = licence = weights = sha256 = "none"

    def __init__(self) -> None:
        self.network = Stashing()

    def _records(self, batch: np.ndarray) -> list[np.ndarray]:
        return list(batch)

    def _features(self, records: list[np.ndarray]) -> Tensor:
        return self.network(torch.from_numpy(np.stack(records)).float() / 255)


class Lists(Corners):
    def forward(self, images: Tensor) -> list[Tensor]:  # type: ignore[override]
        return [images]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


def test_every_name_is_that_of_its_encoder() -> None:
    assert set(ENCODERS) == {"efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "minilm"}
    for name in ENCODERS:
        encoder = encoder_named(name)
        facts = encoder.facts()
        assert encoder.name == facts["name"] == name
        assert facts["trained_on"] and facts["licence"] and len(facts["sha256"]) == 64
        assert encoder.code()[0].startswith("dpal.")
    assert {kind: encoder_named(name).reads for kind, name in DEFAULT_ENCODERS.items()} == {
        IMAGES: IMAGES,
        TEXTS: TEXTS,
    }


def test_options_are_the_encoders_own() -> None:
    assert encoder_named("efficientnet-lite0", side=96).facts()["side"] == 96
    assert encoder_named("minilm", max_length=32).facts()["max_length"] == 32
    with pytest.raises(InvalidArgument, match=r"options of the encoder minilm is \{'side': 96\}"):
        encoder_named("minilm", side=96)
    with pytest.raises(InvalidArgument, match="encoder is 'resnet', but must be one of efficientnet-lite0"):
        encoder_named("resnet")
    with pytest.raises(InvalidArgument, match="an Encoder or a torch module"):
        as_encoder(7)


def test_any_torch_module_by_its_import_path() -> None:
    encoder = encoder_named(f"{HERE}:Corners")
    assert (encoder.blocks, encoder.trained_on, encoder.licence) == ((3,), "nothing at all", "not stated")
    pictures = album(2, side=16)
    # The module sees numbers from 0 to 1.
    expected = pictures[:, :, :4, :4].mean((2, 3)) / 255 * [1, 2, 3]
    assert encoder.encode(pictures) == pytest.approx(expected, abs=1e-5)
    assert encoder.code() == (f"{__name__}:Corners",)


def test_maps_are_averaged_over_the_image() -> None:
    encoder = as_encoder(Maps())
    pictures = album(2, side=16)
    assert encoder.encode(pictures) == pytest.approx(pictures.mean((2, 3)) / 255 * [1, 2, 3], abs=1e-5)


def test_the_identity_of_a_module_is_in_its_weights() -> None:
    one, other = Corners(), Corners()
    assert as_encoder(one).identity() == as_encoder(other).identity()
    other.weight.data[0] = 1.5
    assert as_encoder(one).identity() != as_encoder(other).identity()


def test_a_module_that_mixes_images_is_refused() -> None:
    with pytest.raises(MixesRecords, match="another row next to other images"):
        as_encoder(Mixing())
    for kind in (Remembering, RememberingUnseen):
        with pytest.raises(MixesRecords, match="keeps something from earlier ones"):
            as_encoder(kind())
    with pytest.raises(DpalError, match="returned list instead of one row"):
        as_encoder(Lists())


class NotCopied(Stashing):
    def __deepcopy__(self, memo: object) -> None:
        raise TypeError("a lock cannot be copied")


@pytest.mark.parametrize("kind", [Stashing, OwnEncoder, NotCopied])
def test_a_network_that_threads_would_mix_up_gives_every_image_its_own_row(kind: type[nn.Module]) -> None:
    encoder, pictures = as_encoder(kind()), album(24, side=16)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        rows = encoder.encode(pictures)
    finally:
        torch.set_num_threads(before)
    assert rows == pytest.approx(pictures[:, :, :4, :4].mean((2, 3)) / 255 * [1, 2, 3], abs=1e-5)
    # Copies share the weights.
    assert {id(copy.network.weight) for copy in encoder._copies} <= {id(encoder.network.weight)}


def test_a_text_model_of_transformers_by_its_folder(tmp_path: Path) -> None:
    folder = write_tiny_bert(tmp_path / "bert")
    encoder = encoder_named(f"transformers:{folder}", max_length=16)
    assert (encoder.reads, encoder.width) == (TEXTS, 32)
    rows = encoder.encode([("no fever",), ("a man runs .",)])
    assert rows.shape == (2, 32)
    assert not np.allclose(rows[0], rows[1])
