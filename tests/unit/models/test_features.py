"""The model `features`: which encoder it uses, and its head."""

import pytest
import torch
from torch import nn

from dpal.errors import InvalidArgument
from dpal.models.efficientnet_lite import EfficientNetLite0
from dpal.models.encoder import IMAGES, TEXTS
from dpal.models.features import Features, head_for, seeded_head
from dpal.models.registry import build_model


def test_without_an_encoder_the_records_decide() -> None:
    assert Features().loaded_encoder(IMAGES).name == "efficientnet-lite0"
    assert Features().loaded_encoder(TEXTS).name == "minilm"
    assert Features(encoder="efficientnet-lite1", side=64).loaded_encoder(IMAGES).facts()["side"] == 64


@pytest.mark.parametrize(
    ("image_side", "stated", "side"), [(8, None, 64), (32, None, 224), (500, None, 224), (8, 96, 96)]
)
def test_small_images_are_enlarged_eight_times_at_most(image_side: int, stated: int | None, side: int) -> None:
    encoder = Features(side=stated).loaded_encoder(IMAGES, image_side=image_side)
    assert encoder.facts()["side"] == side
    assert "side" not in Features().loaded_encoder(TEXTS, image_side=None).facts()


def test_what_is_given_in_python_is_recognised() -> None:
    encoder = EfficientNetLite0(side=64)
    assert Features.of(encoder) == Features(encoder=encoder)
    assert Features.of(Features(hidden=3)) == Features(hidden=3)
    assert Features.of(nn.Linear(2, 2)) is None


def test_the_head_has_the_encoders_blocks_and_repeats_with_a_seed() -> None:
    encoder = EfficientNetLite0(side=64)
    head = head_for(encoder, classes=3)
    assert head.blocks == encoder.blocks
    assert tuple(head.output.weight.shape) == (3, 784)
    before = torch.random.get_rng_state()
    one, other = (seeded_head(encoder, classes=3, hidden=5, seed=7).state_dict() for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_it_is_a_model_of_the_registry() -> None:
    model = build_model("features", {"encoder": "efficientnet-lite0", "classes": 2, "hidden": 4})
    assert tuple(model(torch.zeros(1, 784)).shape) == (1, 2)
    with pytest.raises(InvalidArgument, match="options of the model features"):
        build_model("features", {"classes": 2, "depth": 3})
