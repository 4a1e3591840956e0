"""Layers whose filters are copies of one weight."""

import pytest
import torch
from engine_cases import assert_same, engine_of
from networks import Flat, plain_loop
from torch import Tensor, nn

from dpal.models.equivariant import SQUARE, GroupConvolution, LiftingConvolution
from dpal.training.engines.engine import NotCoveredError
from dpal.training.engines.fused_engine import FusedEngine

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


def test_whoever_derives_from_a_tied_layer_is_on_their_own() -> None:
    class Strided(LiftingConvolution):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images)[:, :, ::2, ::2]

    class WithBias(LiftingConvolution):
        def __init__(self) -> None:
            super().__init__(2, 3, SQUARE)
            self.bias = nn.Parameter(torch.zeros(3))

    batch, targets = torch.randn(3, 2, 6, 6), torch.randint(0, 3, (3,))
    for body in (Strided(2, 3, SQUARE), WithBias()):
        with pytest.raises(NotCoveredError):
            engine_of(FusedEngine, Flat(body, 24)).clipped_sum(batch, targets)


def test_group_convolutions_of_images_that_are_not_square() -> None:
    torch.manual_seed(10)
    model = Flat(nn.Sequential(LiftingConvolution(2, 3, SQUARE), nn.Mish(), GroupConvolution(3, 2, SQUARE)), 16)
    batch, targets = torch.randn(3, 2, 8, 5), torch.randint(0, 3, (3,))
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(engine_of(FusedEngine, model).clipped_sum(batch, targets).gradients, wanted)
