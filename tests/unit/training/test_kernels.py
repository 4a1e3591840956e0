"""The Triton kernels compute what they should; without a GPU in Triton's interpreter, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from dpal.training.engines.compilation import CHEAPER_FORMS, mish, mish_backward

pytest.importorskip("triton", reason="Triton comes with torch for CUDA, and with dpal's dev extra on Linux")


def test_kernels_equal_float64_references() -> None:
    script = Path(__file__).parents[2] / "support" / "interpreted_kernels.py"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    errors = {words.rpartition(" ")[0]: float(words.rpartition(" ")[2]) for words in ran.stdout.splitlines()}
    assert len(errors) == 9
    for case, error in errors.items():
        assert error < (1e-2 if case.startswith("bf16") else 1e-5), case


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
