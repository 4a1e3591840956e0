"""Compiled functions are shared by what they compute, and Mish in its cheaper form is Mish."""

import pytest
import torch
from engine_cases import assert_same
from networks import cross_entropy, plain_loop
from torch import Tensor, nn
from torch.nn import functional

from dpal.training.engines import compilation
from dpal.training.engines.compilation import CHEAPER_FORMS, mish, mish_backward
from dpal.training.engines.fused_engine import FusedEngine

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


class Scaled(nn.Module):
    """A layer whose behaviour no name, shape or text tells."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.linear, self.scale = nn.Linear(4, 3), scale

    def forward(self, given: Tensor) -> Tensor:
        return self.linear(given) * self.scale


def test_compiled_code_is_shared_by_what_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: dict[object, object] = {}
    monkeypatch.setattr(compilation, "_COMPILED", compiled)
    torch.manual_seed(8)
    batch, targets = torch.randn(4, 4), torch.randint(0, 3, (4,))

    def right(model: nn.Module) -> int:
        """Whether the engine is right; how much code there is then."""
        engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=0.5, compiled=True)
        _, wanted = plain_loop(model, batch, targets, 0.5)
        assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
        return len(compiled)

    first = right(Scaled(1.0))
    # Other weights, same code.
    assert right(Scaled(1.0)) == first
    # The sum is the same function, the norms are not.
    assert right(Scaled(5.0)) == first + 1
    hooked = Scaled(1.0)
    hooked.register_forward_pre_hook(lambda _, given: (given[0] / 10,))
    assert right(hooked) == first + 2
    constant = Scaled(1.0)
    constant.register_forward_hook(lambda *given: given[2] + torch.tensor([1.0, 2.0, 3.0]))
    another = Scaled(1.0)
    another.register_forward_hook(lambda *given: given[2] + torch.tensor([3.0, 2.0, 1.0]))
    assert right(another) == right(constant) - 1


def test_tracing_draws_nothing() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))
    batch, targets = torch.randn(4, 4), torch.randint(0, 3, (4,))
    found = []
    for _ in range(2):
        engine = FusedEngine(model=model, loss=cross_entropy, max_grad_norm=1e6, compiled=True)
        for _ in range(2):  # the first time it is traced
            torch.manual_seed(3)
            found.append(engine.clipped_sum(batch, targets).gradients["1.weight"])
    assert all(torch.equal(each, found[0]) for each in found)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_cheaper_mish_is_mish(dtype: torch.dtype) -> None:
    values = torch.linspace(-100, 100, 20_001, dtype=dtype)
    exact = values.double().requires_grad_()
    wanted = functional.mish(exact)
    (slope,) = torch.autograd.grad(wanted.sum(), exact)
    # Torch's own derivative loses some bits of float64 to 1 - tanh².
    few = (32 if dtype == torch.float64 else 4) * torch.finfo(dtype).eps
    close = {"rtol": few, "atol": few}
    torch.testing.assert_close(mish(values).double(), wanted.detach(), **close)
    torch.testing.assert_close(mish_backward(torch.ones_like(values), values).double(), slope, **close)
    assert mish(values).dtype == dtype
    assert set(CHEAPER_FORMS) == {torch.ops.aten.mish.default, torch.ops.aten.mish_backward.default}


def test_the_slope_of_huge_values_is_one() -> None:
    huge = torch.tensor([1e4, 1e10, 1e16, 1e18, 1e25, 3e38])
    assert torch.equal(mish_backward(torch.ones_like(huge), huge), torch.ones_like(huge))


def test_a_broken_value_stays_broken() -> None:
    assert torch.isnan(mish(torch.tensor([torch.nan]))).all()
    assert torch.isnan(nn.functional.mish(torch.tensor([torch.nan]))).all()
