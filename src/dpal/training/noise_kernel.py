# pyright: basic, reportMissingImports=false, reportConstantRedefinition=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false, reportArgumentType=false, reportCallIssue=false
"""A Triton kernel for CUDA: the ChaCha20 key stream that noise is made of.

Without Triton `AVAILABLE` is false, and `noise` computes the same stream with torch.
"""

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    AVAILABLE = True
except ImportError:
    AVAILABLE = False

if AVAILABLE:

    @triton.jit
    def _quarter(a, b, c, d):
        a = a + b
        d = d ^ a
        d = (d << 16) | (d >> 16)
        c = c + d
        b = b ^ c
        b = (b << 12) | (b >> 20)
        a = a + b
        d = d ^ a
        d = (d << 8) | (d >> 24)
        c = c + d
        b = b ^ c
        b = (b << 7) | (b >> 25)
        return a, b, c, d

    @triton.jit
    def _chacha20(key, words, blocks, BLOCK: tl.constexpr):
        # RFC 8439 with a nonce of zeros: one key stream block per lane, its sixteen words `blocks` apart.
        lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        zero = tl.zeros((BLOCK,), dtype=tl.uint32)
        k0, k1, k2, k3 = zero + tl.load(key), zero + tl.load(key + 1), zero + tl.load(key + 2), zero + tl.load(key + 3)
        k4, k5, k6, k7 = (
            zero + tl.load(key + 4),
            zero + tl.load(key + 5),
            zero + tl.load(key + 6),
            zero + tl.load(key + 7),
        )
        c0, c1, c2, c3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
        counter = lane.to(tl.uint32)
        x0, x1, x2, x3, x4, x5, x6, x7 = c0, c1, c2, c3, k0, k1, k2, k3
        x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, counter, zero, zero, zero
        for _ in range(10):
            x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
            x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
            x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
            x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
            x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
            x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
            x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
            x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
        inside = lane < blocks
        words += lane
        tl.store(words, x0 + c0, mask=inside)
        tl.store(words + blocks, x1 + c1, mask=inside)
        tl.store(words + 2 * blocks, x2 + c2, mask=inside)
        tl.store(words + 3 * blocks, x3 + c3, mask=inside)
        tl.store(words + 4 * blocks, x4 + k0, mask=inside)
        tl.store(words + 5 * blocks, x5 + k1, mask=inside)
        tl.store(words + 6 * blocks, x6 + k2, mask=inside)
        tl.store(words + 7 * blocks, x7 + k3, mask=inside)
        tl.store(words + 8 * blocks, x8 + k4, mask=inside)
        tl.store(words + 9 * blocks, x9 + k5, mask=inside)
        tl.store(words + 10 * blocks, x10 + k6, mask=inside)
        tl.store(words + 11 * blocks, x11 + k7, mask=inside)
        tl.store(words + 12 * blocks, x12 + counter, mask=inside)
        tl.store(words + 13 * blocks, x13, mask=inside)
        tl.store(words + 14 * blocks, x14, mask=inside)
        tl.store(words + 15 * blocks, x15, mask=inside)


def chacha20_blocks(key: Tensor, blocks: int) -> Tensor:
    """(16, blocks): the key stream's words for the counters 0, 1, …, as int32."""
    words = torch.empty((16, blocks), dtype=torch.uint32, device=key.device)
    _chacha20[(triton.cdiv(blocks, 256),)](key.view(torch.uint32), words, blocks, BLOCK=256)
    return words.view(torch.int32)
