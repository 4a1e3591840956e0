"""The GPU's key stream, in Triton's interpreter on a CPU, is the one that torch computes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpal

pytest.importorskip("triton")

# Two programs of 256 blocks, the second one mostly empty.
PROGRAM = """
import torch
from dpal.training import noise, noise_kernel
assert noise_kernel.AVAILABLE
key = torch.frombuffer(bytearray(range(32)), dtype=torch.int32)
for blocks in (1, 257):
    found = noise_kernel.chacha20_blocks(key, blocks)
    wanted = noise.chacha20_blocks(key, torch.arange(blocks, dtype=torch.int32), (0, 0, 0))
    assert found.dtype == torch.int32
    assert torch.equal(found, wanted), blocks
other = noise_kernel.chacha20_blocks(key.flip(0), 257)
assert not torch.equal(found, other)
print("the same")
"""


def test_the_kernel_gives_the_same_key_stream_as_torch() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(dpal.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "the same"), done.stderr


def test_without_triton_torch_computes_it() -> None:
    program = (
        "import sys; sys.modules['triton'] = None; from dpal.training import noise_kernel as n; print(n.AVAILABLE)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(dpal.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
