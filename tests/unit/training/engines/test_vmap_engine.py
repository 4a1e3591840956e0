"""The engine for any model: also one that uses parameters of its own, and leaves no trace in it."""

import torch
from engine_cases import assert_same, engine_of
from networks import plain_loop
from torch import Tensor, nn

from dpal.training.engines.vmap_engine import VmapEngine


class OwnParameters(nn.Module):
    """No other engine has a rule for it."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix, self.power = nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.tensor(1.5))
        self.frozen = nn.Parameter(torch.randn(3), requires_grad=False)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, given: Tensor) -> Tensor:
        return (given.abs() + 0.1) ** self.power @ self.matrix + self.frozen


def test_parameters_that_belong_to_no_layer() -> None:
    torch.manual_seed(2)
    model, batch, targets = OwnParameters(), torch.randn(5, 4), torch.randint(0, 3, (5,))
    norms, wanted = plain_loop(model, batch, targets, 0.5)
    engine = engine_of(VmapEngine, model)
    torch.testing.assert_close(engine.record_norms(batch, targets).double(), norms, rtol=1e-4, atol=1e-6)
    found = engine.clipped_sum(batch, targets).gradients
    assert found.keys() == {"matrix", "power"}
    assert_same(found, wanted)


def test_the_model_is_as_it_was() -> None:
    torch.manual_seed(2)
    model = OwnParameters()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    engine_of(VmapEngine, model).clipped_sum(torch.randn(5, 4), torch.randint(0, 3, (5,)))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_dropout_differs_between_records() -> None:
    """With one mask for the whole batch, records would share randomness."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 3))
    engine = engine_of(VmapEngine, model)
    norms = engine.record_norms(torch.ones(6, 64), torch.zeros(6, dtype=torch.int64))
    assert len(set(norms.tolist())) > 1
