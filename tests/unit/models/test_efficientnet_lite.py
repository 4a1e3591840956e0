"""EfficientNet-Lite: the published numbers, from our own definition of the network."""

import numpy as np
import pytest
from synthetic_pictures import album, waves

from dpal.errors import InvalidArgument
from dpal.models.efficientnet_lite import EfficientNetLite0, EfficientNetLite1, EfficientNetLite2

# The first number of each stage for one synthetic picture, and the norm of the whole row. With the same weights, the
# package efficientnet-lite-pytorch 0.1.0 agrees with these networks to 2e-5 in every number.
GOLDEN = {
    EfficientNetLite0: ([0.4555, 1.0673, -4.7599, 0.0599, 1.1655, 2.4932, 1.798], 133.733),
    EfficientNetLite1: ([-0.4243, 11.552, 10.0986, -2.9177, -8.2231, -5.2855, -0.1291], 149.406),
    EfficientNetLite2: ([-0.3404, -1.0118, 10.2605, -5.3554, 1.0672, 2.3646, 1.7806], 139.043),
}


@pytest.fixture(scope="module")
def small() -> EfficientNetLite0:
    return EfficientNetLite0(side=64)


@pytest.mark.parametrize("kind", GOLDEN)
def test_a_picture_has_the_published_features(kind: type[EfficientNetLite0]) -> None:
    encoder = kind()
    (row,) = encoder.encode(waves()[None])
    firsts = np.cumsum((0, *encoder.blocks))[:-1]
    expected, norm = GOLDEN[kind]
    assert row[firsts] == pytest.approx(expected, abs=2e-3)
    assert np.linalg.norm(row) == pytest.approx(norm, rel=1e-4)
    assert len(row) == encoder.width == sum(encoder.blocks)


def test_sizes_are_those_of_the_architecture() -> None:
    wanted = {EfficientNetLite0: (224, 784, 16), EfficientNetLite1: (240, 784, 21), EfficientNetLite2: (260, 856, 21)}
    for kind, (side, width, blocks) in wanted.items():
        encoder = kind()
        assert (encoder.side, encoder.width) == (side, width)
        assert sum(name.endswith("narrow.weight") for name in encoder.network.state_dict()) == blocks


def test_nothing_trains_and_no_batch_norm_is_left(small: EfficientNetLite0) -> None:
    assert not any(parameter.requires_grad for parameter in small.network.parameters())
    assert not any("Norm" in type(module).__name__ for module in small.network.modules())


def test_odd_sides_are_padded_as_tensorflow_does(small: EfficientNetLite0) -> None:
    for side in (33, 50, 63):
        rows = EfficientNetLite0(side=side).encode(album(1, side))
        assert np.isfinite(rows).all()
    with pytest.raises(InvalidArgument, match="side is 16, but must be a whole number of at least 32"):
        EfficientNetLite0(side=16)
