"""Which engine a model gets, and which models get none."""

import logging
import re
from unittest.mock import patch

import pytest
import torch
from engine_cases import SAMPLES, Body, assert_same
from networks import cross_entropy, plain_loop
from torch import Tensor, nn

from dpal.errors import DpalError, InvalidArgument, MixesRecords
from dpal.training.engines import layer_capture
from dpal.training.engines.engine_choice import ENGINES, engine_for
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.opacus_engine import OpacusEngine

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


def test_the_automatic_choice(caplog: pytest.LogCaptureFixture) -> None:
    class OwnParameter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.head = nn.Parameter(torch.ones(4)), nn.Linear(4, 3)

        def forward(self, given: Tensor) -> Tensor:
            return self.head(given * self.scale)

    targets = torch.randint(0, 3, (4,))
    cases = [
        (nn.Linear(4, 3), torch.randn(4, 4), FusedEngine),
        (nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(12, 3)), torch.randn(4, 2, 6), OpacusEngine),
        (OwnParameter(), torch.randn(4, 4), OpacusEngine),
    ]
    for model, batch, expected in cases:
        with caplog.at_level(logging.INFO, logger="dpal.training"):
            engine = engine_for(model, cross_entropy, max_grad_norm=1.0, sample=(batch, targets))
        assert type(engine) is expected
        assert f"clipping engine: {expected.name}" in caplog.text
        _, wanted = plain_loop(model, batch, targets, 1.0)
        assert_same(engine.clipped_sum(batch, targets).gradients, wanted)
    assert "no rule for the layer 0 (Conv1d)" in caplog.text


def test_the_choice_does_not_depend_on_the_mode() -> None:
    # Models come from scoring, in evaluation mode.
    model = nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(12, 3)).eval()
    sample = (torch.randn(4, 2, 6), torch.randint(0, 3, (4,)))
    assert engine_for(model, cross_entropy, max_grad_norm=1.0, sample=sample).name == "opacus"
    assert not any(module.training for module in model.modules())


def test_the_engine_by_name() -> None:
    sample = (torch.randn(4, 4), torch.randint(0, 3, (4,)))
    for name, kind in ENGINES.items():
        assert type(engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1, sample=sample, name=name)) is kind
    with pytest.raises(InvalidArgument, match="engine is 'ghost'"):
        engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1, sample=sample, name="ghost")
    with pytest.raises(InvalidArgument, match="precision is 'half'"):
        engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1, sample=sample, precision="half")
    frozen = nn.Linear(4, 3).requires_grad_(False)
    with pytest.raises(DpalError, match="no parameter that trains"):
        engine_for(frozen, cross_entropy, max_grad_norm=1, sample=sample)


def test_batch_norm_is_refused_by_name() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(MixesRecords, match=r"Layer 1 is a BatchNorm2d.*GroupNorm\(2, 4\)"):
        engine_for(model, cross_entropy, max_grad_norm=1, sample=(torch.randn(2, 2, 6, 6), torch.tensor([0, 1])))


def test_an_engine_that_cannot_run_in_the_precision_is_not_chosen() -> None:
    class OwnConstant(Body):
        def forward(self, given: Tensor) -> Tensor:
            return self.head(self.body(given) * torch.ones(5))

    targets = torch.tensor([0, 1, 2, 0, 1])
    for precision, expected in (("float32", FusedEngine), ("bf16", OpacusEngine)):
        sample = (SAMPLES["different"], targets)
        engine = engine_for(OwnConstant(), cross_entropy, max_grad_norm=1.0, sample=sample, precision=precision)
        assert type(engine) is expected
        assert int(engine.clipped_sum(*sample).not_finite) == 0


@pytest.mark.parametrize("channels", [1, 2, 3, 7, 16, 20, 48, 64, 100, 256])
def test_the_suggested_group_norm_works(channels: int) -> None:
    with pytest.raises(MixesRecords) as caught:
        engine_for(
            nn.Sequential(nn.BatchNorm1d(channels), nn.Linear(channels, 3)),
            cross_entropy,
            max_grad_norm=1.0,
            sample=(torch.randn(3, channels), torch.tensor([0, 1, 2])),
        )
    groups, of = re.findall(r"nn\.GroupNorm\((\d+), (\d+)\)", str(caught.value))[0]
    norm = nn.GroupNorm(int(groups), int(of))
    assert int(of) == channels and int(groups) <= 32
    assert channels == 1 or norm(torch.randn(2, channels)).abs().sum() > 0


def test_every_engine_is_accepted_for_units_and_knows_how_many_rows_share_a_gradient() -> None:
    for rows_per_unit, units in ((2, 4), (3, 3), (30, 2)):
        count = rows_per_unit * units * 2
        sample = (torch.randn(count, 4), torch.randint(0, 3, (count,)))
        for name in ENGINES:
            engine = engine_for(
                nn.Linear(4, 3),
                cross_entropy,
                max_grad_norm=1.0,
                sample=sample,
                name=name,
                copies=2,
                rows_per_unit=rows_per_unit,
            )
            assert engine.copies == 2 * rows_per_unit


def test_an_engine_that_ignores_weights_is_not_chosen_for_units(monkeypatch: pytest.MonkeyPatch) -> None:
    true = layer_capture.combined_loss
    monkeypatch.setattr(layer_capture, "combined_loss", lambda losses, copies, weights: true(losses, copies, None))
    sample = (torch.randn(8, 4), torch.randint(0, 3, (8,)))
    options = {"max_grad_norm": 1.0, "sample": sample}
    assert engine_for(nn.Linear(4, 3), cross_entropy, **options).name == "fused"
    assert engine_for(nn.Linear(4, 3), cross_entropy, rows_per_unit=2, **options).name == "opacus"


def test_a_sample_has_two_whole_units() -> None:
    sample = (torch.randn(5, 4), torch.randint(0, 3, (5,)))
    with pytest.raises(InvalidArgument, match="number of units in the sample is 1"):
        engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1.0, sample=sample, rows_per_unit=3)
    with pytest.raises(InvalidArgument, match="rows_per_unit is 0"):
        engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1.0, sample=sample, rows_per_unit=0)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        torch.OutOfMemoryError("CUDA out of memory"),
    ],
)
def test_too_little_memory_does_not_choose_another_engine(error: Exception) -> None:
    """It would depend on the machine's load which model a charge leads to, and a repeated step might make another."""
    sample = (torch.randn(4, 4), torch.randint(0, 3, (4,)))
    with patch.object(FusedEngine, "clipped_sum", side_effect=error), pytest.raises(type(error)):
        engine_for(nn.Linear(4, 3), cross_entropy, max_grad_norm=1.0, sample=sample)
