"""Convolutions in Triton kernels; without a GPU in Triton's interpreter, in a process of its own."""

import pytest
from interpreted_kernels import errors_of

pytest.importorskip("triton", reason="Triton comes with torch for CUDA, and with dpal's dev extra on Linux")


def test_convolutions_equal_float64_references() -> None:
    errors = errors_of("convolution")
    assert len(errors) == 3
    for case, error in errors.items():
        assert error < 1e-5, case
