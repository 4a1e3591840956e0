"""Engines and what their sums are compared with."""

import torch
from networks import NETWORKS, RECORDS, cross_entropy
from torch import Tensor, nn

from dpal.training.engines.engine import ClippingEngine


def seeded_network(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(sum(map(ord, name)))
    model, batch = NETWORKS[name]()
    return model, batch, torch.randint(0, 3, (RECORDS,))


def engine_of(
    kind: type[ClippingEngine], model: nn.Module, max_grad_norm: float = 0.5, **options: object
) -> ClippingEngine:
    return kind(model=model, loss=cross_entropy, max_grad_norm=max_grad_norm, **options)


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor], *, close: float = 5e-5) -> None:
    assert found.keys() == wanted.keys()
    scale = max(float(each.abs().max()) for each in wanted.values()) or 1.0
    for name, each in wanted.items():
        assert found[name].shape == each.shape
        assert found[name].dtype == torch.float64
        torch.testing.assert_close(found[name], each.double(), rtol=0, atol=close * scale, msg=name)


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("variance", torch.ones(5))
        self.last = torch.zeros(4)


SAMPLES = {
    "different": torch.randn(5, 4, generator=torch.Generator().manual_seed(1)),
    "identical": torch.ones(5, 4),
    "partly broken": torch.cat([torch.full((2, 4), float("nan")), torch.ones(3, 4)]),
}
