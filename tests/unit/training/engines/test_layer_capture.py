"""Which models the fused engine's patched layers cover, and what they refuse."""

import pytest
import torch
from engine_cases import assert_same, engine_of, seeded_network
from networks import cross_entropy, plain_loop
from torch import Tensor, nn

from dpal.training.engines.engine import NotCoveredError
from dpal.training.engines.engine_choice import engine_for
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.tied_layers import TiedGroupNorm

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


def test_what_the_fused_engine_cannot_see_it_refuses() -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 3)

        def forward(self, given: Tensor) -> Tensor:
            return self.body(given.transpose(0, 1)).mean(0)

    class ChangesItsInput(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 4)

        def forward(self, given: Tensor) -> Tensor:
            hidden = given * 1.0
            out = self.body(hidden)
            hidden.add_(1.0)
            return out

    batch, targets = torch.randn(2, 5, 4), torch.tensor([0, 1])
    with pytest.raises(NotCoveredError, match="records must be the first dimension"):
        engine_of(FusedEngine, TimeFirst()).clipped_sum(batch, targets)
    with pytest.raises(NotCoveredError, match="changed in place"):
        engine_of(FusedEngine, ChangesItsInput()).clipped_sum(batch[:, 0], targets)
    whole = FusedEngine(model=nn.Linear(4, 3), loss=lambda o, t: cross_entropy(o, t).sum(), max_grad_norm=1)
    with pytest.raises(NotCoveredError, match="not one value per record"):
        whole.clipped_sum(batch[:, 0], targets)
    with pytest.raises(NotCoveredError, match="sparse"):
        engine_of(FusedEngine, nn.Embedding(4, 3, sparse=True))


def test_layers_are_as_before_after_a_run() -> None:
    model, batch, targets = seeded_network("group norm")
    before = model(batch)
    engine_of(FusedEngine, model).clipped_sum(batch, targets)
    assert torch.equal(model(batch), before)
    assert all("forward" not in vars(module) for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_embedding_used_twice_and_layers_called_by_keyword() -> None:
    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.head = nn.Embedding(9, 6, padding_idx=0), nn.Linear(6, 3)

        def forward(self, pairs: Tensor) -> Tensor:
            first, second = pairs.chunk(2, dim=1)
            return self.head(input=self.tokens(first).mean(1) * self.tokens(second).mean(1))

    torch.manual_seed(4)
    model, batch, targets = Pairs(), torch.randint(0, 9, (5, 8)), torch.randint(0, 3, (5,))
    engine = engine_for(model, cross_entropy, max_grad_norm=0.2, sample=(batch, targets))
    assert engine.name == "fused"
    _, wanted = plain_loop(model, batch, targets, 0.2)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


def test_a_layer_with_a_forward_of_its_own_is_left_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 3))
    plain = model[0].forward
    model[0].forward = lambda given: 2 * plain(given)
    sample = (torch.randn(3, 4), torch.tensor([0, 1, 2]))
    engine = engine_for(model, cross_entropy, max_grad_norm=1.0, sample=sample)
    assert engine.name != "fused"
    assert "forward" in vars(model[0])


def test_a_norm_whose_rows_are_not_records_is_refused() -> None:
    class Frames(nn.Module):
        def __init__(self, norm: nn.Module) -> None:
            super().__init__()
            self.norm, self.head = norm, nn.Linear(8, 3)

        def forward(self, given: Tensor) -> Tensor:
            frames = self.norm(given.reshape(-1, 8, 2, 2))
            return self.head(frames.reshape(len(given), -1, 8, 4).mean(dim=(1, 3)))

    batch, targets = torch.randn(3, 16, 2, 2), torch.randint(0, 3, (3,))
    for norm in (nn.GroupNorm(4, 8), TiedGroupNorm(4, 2, 2)):
        with pytest.raises(NotCoveredError, match="records must be the first dimension"):
            engine_of(FusedEngine, Frames(norm)).clipped_sum(batch, targets)


def test_a_frozen_traced_part_is_no_obstacle() -> None:
    torch.manual_seed(11)
    frozen = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4))
    for parameter in frozen.parameters():
        parameter.requires_grad_(False)
    model = nn.Sequential(frozen, nn.Linear(4, 3))
    batch, targets = torch.randn(5, 4), torch.randint(0, 3, (5,))
    _, wanted = plain_loop(model, batch, targets, 0.5)
    engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3)),
        nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.Dropout(0.1, inplace=True), nn.Flatten(), nn.Linear(64, 3)),
        nn.Sequential(nn.GroupNorm(1, 1), nn.Dropout(0.1, inplace=True), nn.Flatten(), nn.Linear(36, 3)),
    ],
    ids=["relu", "dropout", "norm"],
)
def test_changes_in_place_right_after_the_first_layer(model: nn.Module) -> None:
    batch, targets = torch.randn(5, 1, 6, 6), torch.tensor([0, 1, 2, 0, 1])
    engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
    assert engine.name == "fused"
    model.train()
    engine.clipped_sum(batch, targets)
    model.eval()
    _, wanted = plain_loop(model, batch, targets, 0.5)
    assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
