"""Features turn with the image."""

import pytest
import torch

from dpal.errors import InvalidArgument
from dpal.models.equivariant import (
    HALF_TURNS,
    SQUARE,
    EquivariantResNet9,
    GroupConvolution,
    LiftingConvolution,
    Restriction,
    inverse,
    product,
    turned,
)
from dpal.models.resnet9 import ResNet9


def test_sizes_and_shapes() -> None:
    assert sum(each.numel() for each in EquivariantResNet9().parameters()) == 455_026
    for side in (8, 16, 32):
        assert EquivariantResNet9(classes=7)(torch.randn(2, 3, side, side)).shape == (2, 7)


def test_the_symmetries_are_a_group_that_turns_images() -> None:
    image = torch.randn(3, 4, 4)
    for g in SQUARE:
        assert product(g, inverse(g)) == (0, 0)
        for h in SQUARE:
            assert torch.equal(turned(image, product(g, h)), turned(turned(image, h), g))
    assert len({tuple(turned(image, g).flatten().tolist()) for g in SQUARE}) == 8


def moved(features: torch.Tensor, h: tuple[int, int], symmetries: tuple[tuple[int, int], ...]) -> torch.Tensor:
    """What equivariance says the features of a turned image are: each map turned, and moved from g to h·g."""
    maps = features.unflatten(1, (-1, len(symmetries)))
    order = [symmetries.index(product(inverse(h), g)) for g in symmetries]
    return turned(maps[:, :, order], h).flatten(1, 2)


@pytest.mark.parametrize("symmetries", [SQUARE, HALF_TURNS, ((0, 0), (0, 1)), ((0, 0), (2, 0)), ((0, 0),)])
def test_layers_are_equivariant(symmetries: tuple[tuple[int, int], ...]) -> None:
    torch.manual_seed(1)
    images = torch.randn(2, 3, 6, 6)
    lifting, convolution = LiftingConvolution(3, 4, symmetries), GroupConvolution(4, 5, symmetries)
    features = lifting(images)
    for h in symmetries:
        torch.testing.assert_close(lifting(turned(images, h)), moved(features, h, symmetries), rtol=0, atol=1e-5)
        torch.testing.assert_close(
            convolution(moved(features, h, symmetries)),
            moved(convolution(features), h, symmetries),
            rtol=0,
            atol=1e-5,
        )
    restriction = Restriction(SQUARE, symmetries)
    whole = torch.randn(2, 3 * 8, 4, 4)
    for h in symmetries:
        torch.testing.assert_close(restriction(moved(whole, h, SQUARE)), moved(restriction(whole), h, symmetries))


@pytest.mark.parametrize("kept", [SQUARE, HALF_TURNS])
def test_logits_ignore_the_kept_symmetries_and_only_those(kept: tuple[tuple[int, int], ...]) -> None:
    torch.manual_seed(2)
    model = EquivariantResNet9(fields=(4, 6, 8), last_symmetries=kept, parts=1).eval()
    images = torch.randn(3, 3, 16, 16)
    with torch.no_grad():
        logits = model(images)
        for g in SQUARE:
            difference = (model(turned(images, g)) - logits).abs().max()
            assert difference < 1e-5 if g in kept else difference > 1e-3
    # The plain network does care.
    plain = ResNet9().eval()
    with torch.no_grad():
        assert (plain(turned(images, (1, 0))) - plain(images)).abs().max() > 1e-3


def test_by_default_logits_see_quarters_of_the_image() -> None:
    torch.manual_seed(3)
    model = EquivariantResNet9(fields=(4, 6, 8)).eval()
    images = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        fields = model.features(images).unflatten(1, (-1, len(HALF_TURNS))).amax(dim=2)
        quarters = torch.stack([fields[:, :, y, x] for y in (0, 1) for x in (0, 1)], dim=2)
        torch.testing.assert_close(model(images), model.classifier(quarters.flatten(1)))
        assert (model(turned(images, (2, 0))) - model(images)).abs().max() > 1e-3
    with pytest.raises(InvalidArgument, match="parts"):
        EquivariantResNet9(parts=0)


def test_what_is_no_group_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="last_symmetries"):
        EquivariantResNet9(last_symmetries=((0, 0), (1, 0)))
