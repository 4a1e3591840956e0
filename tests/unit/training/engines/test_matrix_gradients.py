"""Every method to compute a matrix's norms and sum gives the same."""

import pytest
import torch
from engine_cases import assert_same, engine_of, seeded_network
from networks import NETWORKS, plain_loop
from torch import Tensor, nn

from dpal.training.engines import matrix_gradients
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.matrix_gradients import GradientMethod

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


@pytest.mark.parametrize("way", ["stored", "gram"])
@pytest.mark.parametrize("name", NETWORKS)
def test_both_ways_to_a_norm_agree(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod(way))
    model, batch, targets = seeded_network(name)
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(engine_of(FusedEngine, model).clipped_sum(batch, targets).gradients, wanted)


@pytest.mark.parametrize("way", ["stored", "gram"])
def test_a_broken_record_spoils_no_sum_in_either_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod(way))
    for name in ("linear over tokens", "group norm", "convolution in groups"):
        model, batch, targets = seeded_network(name)
        batch[2] = float("inf")
        kept = [0, 1, 3, 4]
        _, wanted = plain_loop(model, batch[kept], targets[kept], 0.5)
        result = engine_of(FusedEngine, model).clipped_sum(batch, targets)
        assert int(result.not_finite) == 1
        assert_same(result.gradients, wanted)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("way", ["stored", "gram"])
def test_positions_that_nearly_cancel_do_not_escape_the_clip(
    precision: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two tokens with the same input and opposite output gradients: what is left is near the rounding of either.
    monkeypatch.setattr(matrix_gradients, "cheapest_method", lambda *_, **__: GradientMethod(way))

    class Cancelling(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.body = nn.Linear(width, width, bias=False)

        def forward(self, given: Tensor) -> Tensor:
            return (self.body(given[:, :2]) * given[:, 2:]).flatten(1).sum(1)

    for seed in range(60):
        torch.manual_seed(seed)
        width = (8, 64, 96)[seed % 3]
        same = (torch.rand(1, 1, width) * 3 + 0.3).expand(1, 2, width)
        opposite = torch.rand(1, 1, width) + 0.5
        gradient = torch.cat([opposite, -opposite], 1) + 2.0**-11 * torch.randn(1, 2, width)
        batch = torch.cat([same, gradient], 1) * 1000
        engine = FusedEngine(model=Cancelling(width), loss=lambda o, _: o, max_grad_norm=1.0, precision=precision)
        alone = engine.clipped_sum(batch, torch.zeros(1)).gradients["body.weight"]
        assert float(alone.double().norm()) <= 1.0


def test_one_embedding_that_skips_an_index_in_one_of_two_places() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.head = (
                nn.Embedding(10, 4, padding_idx=7),
                nn.Embedding(10, 4),
                nn.Linear(4, 3),
            )
            self.second.weight = self.first.weight

        def forward(self, given: Tensor) -> Tensor:
            return self.head((torch.tanh(self.first(given)) + self.second(given) ** 2).mean(1))

    torch.manual_seed(3)
    batch, targets = torch.randint(0, 10, (8, 5)), torch.randint(0, 3, (8,))
    batch[:, 0] = 7
    model = Twice()
    model.first.weight.data.normal_()
    norms, wanted = plain_loop(model, batch, targets, 0.5)
    engine = engine_of(FusedEngine, model)
    torch.testing.assert_close(engine.record_norms(batch, targets).double(), norms, rtol=1e-4, atol=1e-6)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
