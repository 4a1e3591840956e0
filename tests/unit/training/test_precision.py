"""Which rounding of products is allowed."""

import pytest
import torch
from networks import cross_entropy
from torch import nn

from dpal.errors import DpalError
from dpal.training.engines.engine_choice import engine_for

# Torch says so about even kernels, and about its own compiler's use of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch._prims_common.check.*:FutureWarning"),
]


def test_a_foreign_tf32_setting_is_named() -> None:
    # Not as a failure of every engine.
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        with pytest.raises(DpalError, match="choose a precision in dpal"):
            engine_for(
                nn.Linear(4, 3),
                cross_entropy,
                max_grad_norm=1.0,
                sample=(torch.randn(3, 4), torch.tensor([0, 1, 2])),
            )
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
