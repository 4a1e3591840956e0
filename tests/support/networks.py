"""Small networks of every kind that the engines must get right, each with a batch for it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpal.models.equivariant import SQUARE, GroupConvolution, LiftingConvolution
from dpal.training.batches import Batch, called, rows
from dpal.training.engines.tied_layers import TiedGroupNorm

RECORDS = 5


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs.float(), targets, reduction="none")


class Flat(nn.Module):
    """A body, a mean over all positions, and a linear layer on top."""

    def __init__(self, body: nn.Module, features: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(features, 3)

    def forward(self, given: Tensor) -> Tensor:
        out = self.body(given)
        return self.head(out.flatten(2).mean(2) if out.ndim > 3 else out.mean(1) if out.ndim == 3 else out)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.in_projection, self.out_projection = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = self.in_projection(tokens).chunk(3, dim=-1)
        return self.out_projection(functional.scaled_dot_product_attention(query, key, value))


class TransformerLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attention(self.first(tokens))
        return tokens + self.feed_forward(self.second(tokens))


class SmallTransformer(nn.Module):
    def __init__(self, *, padding: int | None = 0, width: int = 8, length: int = 6) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, width, padding_idx=padding), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(TransformerLayer(width) for _ in range(2)))
        self.classifier = nn.Linear(width, 3)

    def forward(self, input_ids: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device).expand(input_ids.shape)
        return self.classifier(self.layers(self.tokens(input_ids) + self.places(places)).mean(1))


class SharedAndFrozen(nn.Module):
    """One matrix used three times, a tied embedding, and layers that do not train."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(9, 6), nn.Linear(6, 9, bias=False)
        self.output.weight = self.embedding.weight
        self.frozen = nn.Linear(6, 6)
        self.frozen.requires_grad_(False)
        self.half_frozen = nn.Linear(6, 6)
        self.half_frozen.weight.requires_grad_(False)
        self.again = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)
        self.norm.bias.requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.norm(self.half_frozen(self.frozen(self.embedding(tokens))))
        hidden = self.again(torch.tanh(self.again(hidden)))
        return self.output(hidden.mean(1))


def images(channels: int, side: int = 6) -> Tensor:
    return torch.randn(RECORDS, channels, side, side + 1)


def convolution(**options: object) -> Callable[[], tuple[nn.Module, Tensor]]:
    return lambda: (Flat(nn.Conv2d(4, 6, 3, **options), 6), images(4))


def symmetric() -> nn.Module:
    """Tied layers, also one that is used twice."""
    again = GroupConvolution(3, 3, SQUARE)
    return nn.Sequential(
        LiftingConvolution(2, 3, SQUARE), TiedGroupNorm(3, 8, 3), nn.Mish(), again, nn.Mish(), again, nn.Mish()
    )


NETWORKS: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {
    "linear": lambda: (nn.Linear(7, 3), torch.randn(RECORDS, 7)),
    "linear without bias": lambda: (nn.Linear(7, 3, bias=False), torch.randn(RECORDS, 7)),
    "linear over tokens": lambda: (Flat(nn.Linear(5, 4), 4), torch.randn(RECORDS, 6, 5)),
    "convolution": convolution(),
    "convolution, no bias, padding 1": convolution(bias=False, padding=1),
    "convolution, stride 2, padding (1, 2)": convolution(stride=2, padding=(1, 2)),
    "convolution, stride (1, 2), dilation (2, 1)": convolution(stride=(1, 2), dilation=(2, 1), padding=2),
    "convolution in groups": convolution(groups=2, padding=1),
    "depthwise convolution": lambda: (Flat(nn.Conv2d(4, 8, 3, groups=4), 8), images(4)),
    "convolution, padding same": convolution(padding="same"),
    "convolution, padding same, dilation 2": convolution(padding="same", dilation=2),
    "convolution, padding valid": convolution(padding="valid"),
    "convolution, reflected border": convolution(padding=1, padding_mode="reflect"),
    "convolution, circular border": convolution(padding=(1, 2), padding_mode="circular"),
    "convolution 1 × 1": lambda: (Flat(nn.Conv2d(4, 6, 1), 6), images(4)),
    "even kernel, padding same": lambda: (Flat(nn.Conv2d(4, 6, 2, padding="same"), 6), images(4)),
    "embedding": lambda: (Flat(nn.Embedding(9, 5), 5), torch.randint(0, 9, (RECORDS, 7))),
    "embedding with padding": lambda: (Flat(nn.Embedding(9, 5, padding_idx=2), 5), torch.randint(0, 9, (RECORDS, 7))),
    "group norm": lambda: (Flat(nn.Sequential(nn.Conv2d(4, 6, 3), nn.GroupNorm(3, 6)), 6), images(4)),
    "group norm without weights": lambda: (
        Flat(nn.Sequential(nn.Conv2d(4, 6, 3), nn.GroupNorm(3, 6, affine=False)), 6),
        images(4),
    ),
    "layer norm": lambda: (Flat(nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4)), 4), torch.randn(RECORDS, 6, 5)),
    "layer norm over two dimensions": lambda: (Flat(nn.LayerNorm((6, 5)), 5), torch.randn(RECORDS, 6, 5)),
    "group convolutions": lambda: (Flat(symmetric(), 24), torch.randn(RECORDS, 2, 6, 6)),
    "changes in place": lambda: (
        Flat(nn.Sequential(nn.Conv2d(4, 6, 3), nn.ReLU(inplace=True), nn.Conv2d(6, 6, 1), nn.ReLU(inplace=True)), 6),
        images(4),
    ),
    "small transformer": lambda: (SmallTransformer(), torch.randint(0, 11, (RECORDS, 6))),
    "small transformer without padding": lambda: (
        SmallTransformer(padding=None),
        torch.randint(0, 11, (RECORDS, 6)),
    ),
    "shared and frozen": lambda: (SharedAndFrozen(), torch.randint(0, 9, (RECORDS, 4))),
}


def plain_loop(
    model: nn.Module, batch: Batch, targets: Tensor, max_grad_norm: float, copies: int = 1
) -> tuple[Tensor, dict[str, Tensor]]:
    """Norms and the clipped sum, one record at a time, the slow way that needs no trust."""
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    total = {name: torch.zeros_like(each) for name, each in named}
    norms = []
    for start in range(0, len(targets), copies):
        here = slice(start, start + copies)
        loss = cross_entropy(called(model, rows(batch, here)), targets[here]).sum() / copies
        found = torch.autograd.grad(loss, [each for _, each in named], allow_unused=True)
        gradients = [torch.zeros_like(p) if g is None else g for (_, p), g in zip(named, found, strict=True)]
        norm = torch.stack([gradient.double().square().sum() for gradient in gradients]).sum().sqrt()
        norms.append(norm)
        if torch.isfinite(norm):
            scale = min(1.0, max_grad_norm / float(norm))
            for (name, _), gradient in zip(named, gradients, strict=True):
                total[name] = total[name] + scale * gradient
    return torch.stack(norms), {name: each.detach() for name, each in total.items()}
