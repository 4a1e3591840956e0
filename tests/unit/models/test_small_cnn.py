"""The small network: any small image, and no record looks at another."""

import pytest
import torch

from dpal.errors import InvalidArgument
from dpal.models.small_cnn import SmallCNN


@pytest.mark.parametrize("side", [8, 9, 28])
def test_images_from_8_pixels_on(side: int) -> None:
    assert SmallCNN(channels=3, classes=7)(torch.randn(2, 3, side, side)).shape == (2, 7)


def test_its_size_by_hand() -> None:
    """Convolutions 9·16 + 16 and 9·16·32 + 32, norms 2·16 and 2·32, and a linear layer of 16·32 features to 10."""
    assert sum(each.numel() for each in SmallCNN().parameters()) == 160 + 4640 + 32 + 64 + 16 * 32 * 10 + 10


@pytest.mark.parametrize("name", ["channels", "classes", "width"])
def test_sizes_that_cannot_be_are_named(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{name} is 0, but must be at least 1"):
        SmallCNN(**{name: 0})
    assert SmallCNN(**{name: 1})(torch.randn(1, 1, 8, 8)).shape[0] == 1


def test_a_record_is_scored_as_it_would_be_alone() -> None:
    model, images = SmallCNN().eval(), torch.randn(3, 1, 8, 8)
    torch.testing.assert_close(model(images)[:1], model(images[:1]))


def test_dropout_is_off_unless_asked_for() -> None:
    images = torch.randn(3, 1, 8, 8)
    plain, random = SmallCNN().train(), SmallCNN(dropout=0.5).train()
    assert torch.equal(plain(images), plain(images))
    assert not torch.equal(random(images), random(images))
