"""Samples a second and peak memory of one training step: not private, Opacus, vmap, and dpal's fused engine.

Every private step clips, adds noise and updates the weights. On CUDA the fused engine runs in bfloat16, and Opacus and
vmap in TF32 and, where they can, in bfloat16; on a CPU everything is float32. Each method gets the physical batch it
is fastest with among those listed.
"""

import gc
import math
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from _report import Report, arguments
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import Tensor, nn
from torch.nn import functional

from dpal.models.equivariant import EquivariantResNet9
from dpal.models.resnet9 import ResNet9
from dpal.planning.plan import Phase
from dpal.randomness import SecureRandomness
from dpal.training.engines.engine import ClippingEngine
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.vmap_engine import VmapEngine
from dpal.training.learner import put_channels_last
from dpal.training.loop import set_noisy_gradients
from dpal.training.precision import tf32_allowed

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
Step = Callable[[], None]


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs.float(), targets, reduction="none")


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.projection = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        normed = self.first(tokens)
        parts = [
            each(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in (self.queries, self.keys, self.values)
        ]
        mixed = functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
        tokens = tokens + self.projection(mixed)
        return tokens + self.down(functional.gelu(self.up(self.second(tokens))))


class Transformer(nn.Module):
    """Six layers of width 256 over 128 tokens."""

    def __init__(self, vocabulary: int = 2000, width: int = 256, length: int = 128, layers: int = 6) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, 4) for _ in range(layers)))
        self.classifier = nn.Linear(width, 10)

    def forward(self, given: Tensor) -> Tensor:
        places = torch.arange(given.shape[1], device=given.device).expand(given.shape)
        return self.classifier(self.layers(self.tokens(given) + self.places(places)).mean(1))


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    model: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]
    batches: tuple[int, ...]

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        inputs = self.inputs(size).to(DEVICE)
        if inputs.ndim == 4 and ON_GPU:
            inputs = inputs.to(memory_format=torch.channels_last)
        return inputs, torch.randint(0, 10, (size,), device=DEVICE)

    def made(self, *, channels_last: bool) -> nn.Module:
        torch.manual_seed(0)
        model = self.model().to(DEVICE)
        if channels_last and ON_GPU:
            put_channels_last(model)
        return model


def images(side: int) -> Callable[[int], Tensor]:
    return lambda size: torch.randn(size, 3, side, side)


WORKLOADS = (
    Workload(name="ResNet-9, 32 × 32", model=ResNet9, inputs=images(32), batches=(2048,) if ON_GPU else (32, 64)),
    Workload(name="ResNet-9, 128 × 128", model=ResNet9, inputs=images(128), batches=(256,) if ON_GPU else (8,)),
    Workload(
        name="Eq-ResNet-9, 32 × 32",
        model=EquivariantResNet9,
        inputs=images(32),
        batches=(1024,) if ON_GPU else (32,),
    ),
    Workload(
        name="transformer, 6 layers",
        model=Transformer,
        inputs=lambda size: torch.randint(0, 2000, (size, 128)),
        batches=(256,) if ON_GPU else (32,),
    ),
)


def not_private(workload: Workload, size: int, *, compiled: bool) -> Step:
    model = workload.made(channels_last=True)
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-4)
    forward = torch.compile(model) if compiled else model
    inputs, targets = workload.batch(size)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
            loss = functional.cross_entropy(forward(inputs), targets)
        loss.backward()
        optimizer.step()

    return step


def opacus(workload: Workload, size: int, *, ghost: bool, bf16: bool) -> Step:
    # Images with channels last in memory give wrong gradients in Opacus 1.6, so it gets them first.
    model = workload.made(channels_last=False)
    hooked = (GradSampleModuleFastGradientClipping if ghost else GradSampleModule)(
        model, loss_reduction="mean", **({"max_grad_norm": 1.0, "use_ghost_clipping": True} if ghost else {})
    )
    inner = torch.optim.NAdam(hooked.parameters(), lr=1e-4)
    kind = DPOptimizerFastGradientClipping if ghost else DPOptimizer
    optimizer = kind(inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=size)
    criterion: Any = nn.CrossEntropyLoss()
    if ghost:
        criterion = DPLossFastGradientClipping(hooked, optimizer, nn.CrossEntropyLoss())
    inputs, targets = workload.batch(size)
    inputs = inputs.contiguous()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=bf16), tf32_allowed(True):
            loss = criterion(hooked(inputs), targets)
            loss.backward()
            optimizer.step()

    return step


def ours(workload: Workload, size: int, *, kind: type[ClippingEngine], precision: str) -> Step:
    model = workload.made(channels_last=True)
    engine = kind(model=model, loss=losses, max_grad_norm=1.0, precision=precision)
    if isinstance(engine, FusedEngine):
        engine.physical_records = size
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-4)
    phase = Phase(steps=1, noise_multiplier=1.0, expected_batch_size=float(size), sampling_probabilities=(0.1,))
    inputs, targets = workload.batch(size)
    randomness = SecureRandomness()

    def step() -> None:
        total = engine.clipped_sum(inputs, targets).gradients
        set_noisy_gradients(engine, total, phase, 1.0, randomness)
        optimizer.step()

    return step


# On a GPU, every method takes half a minute, most of it for compiling: these are never the fastest.
ON_THE_FIRST_ONLY = (
    ("dpal fused, tf32", "vmap", "not private, eager", "Opacus hooks, bf16", "Opacus ghost, bf16") if ON_GPU else ()
)


def methods() -> dict[str, Callable[[Workload, int], Step]]:
    """Every method, by name."""
    found: dict[str, Callable[[Workload, int], Step]] = {
        "not private, eager": lambda w, n: not_private(w, n, compiled=False),
        "not private, compiled": lambda w, n: not_private(w, n, compiled=True),
        "Opacus hooks": lambda w, n: opacus(w, n, ghost=False, bf16=False),
        "Opacus ghost": lambda w, n: opacus(w, n, ghost=True, bf16=False),
        "vmap": lambda w, n: ours(w, n, kind=VmapEngine, precision="tf32" if ON_GPU else "float32"),
    }
    if ON_GPU:
        found["Opacus hooks, bf16"] = lambda w, n: opacus(w, n, ghost=False, bf16=True)
        found["Opacus ghost, bf16"] = lambda w, n: opacus(w, n, ghost=True, bf16=True)
        found["dpal fused, tf32"] = lambda w, n: ours(w, n, kind=FusedEngine, precision="tf32")
    found["dpal fused"] = lambda w, n: ours(w, n, kind=FusedEngine, precision="bf16" if ON_GPU else "float32")
    return found


def seconds_of(step: Step, repetitions: int) -> float:
    for _ in range(3 if ON_GPU else 1):
        step()
    found: list[float] = []
    for _ in range(repetitions):
        if ON_GPU:
            torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        if ON_GPU:
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def measure(
    workload: Workload, make: Callable[[Workload, int], Step], repetitions: int, sizes: tuple[int, ...]
) -> tuple[float, float]:
    """Samples a second with the best batch, and GiB of device memory (not measured on a CPU)."""
    best, memory = 0.0, math.nan
    for size in sizes:
        if ON_GPU:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        speed = size / seconds_of(make(workload, size), repetitions)
        if speed > best:
            best = speed
            memory = torch.cuda.max_memory_allocated() / 2**30 if ON_GPU else math.nan
        gc.collect()
    return best, memory


def main() -> None:
    options = arguments(__doc__)
    warnings.filterwarnings("ignore")
    report = Report(name="training", packages=("torch", "opacus"))
    repetitions = 2 if options.quick else (20 if ON_GPU else 7)
    chosen = WORKLOADS[:1] if options.quick else WORKLOADS
    speeds: dict[tuple[str, str], float] = {}
    memories: dict[tuple[str, str], float] = {}
    for workload in chosen:
        for name, make in methods().items():
            if not ON_GPU and name == "not private, compiled":
                continue  # minutes of compilation for nothing on a few cores
            if name in ON_THE_FIRST_ONLY and workload is not WORKLOADS[0]:
                continue
            try:
                speed, memory = measure(
                    workload, make, repetitions, workload.batches[:1] if options.quick else workload.batches
                )
            except Exception as error:
                report.row(what=f"{workload.name}: {name}", samples_per_second="fails", peak_gib=str(error)[:60])
                continue
            speeds[workload.name, name], memories[workload.name, name] = speed, memory
            report.row(what=f"{workload.name}: {name}", samples_per_second=speed, peak_gib=memory if ON_GPU else None)
            print(f"{workload.name}: {name}: {speed:,.1f} samples/s", flush=True)
    for workload in chosen:
        _claims(report, workload.name, speeds, memories)
    extra: dict[str, object] = {"accelerator": torch.cuda.get_device_name()} if ON_GPU else {}
    report.finish(options.json, **extra)


def _claims(
    report: Report, name: str, speeds: dict[tuple[str, str], float], memories: dict[tuple[str, str], float]
) -> None:
    mine = speeds.get((name, "dpal fused"), math.nan)  # a method that fails holds no claim
    peers = max((speed for key, speed in speeds.items() if key[0] == name and "Opacus" in key[1]), default=math.nan)
    wanted = 2.5 if ON_GPU else 1.5
    targeted = name == WORKLOADS[0].name
    report.claim(
        f"{name}: times Opacus's best", mine / peers, f"at least {wanted:g}" if targeted else "none",
        not targeted or mine / peers >= wanted,
    )  # fmt: skip
    if not ON_GPU:
        return
    slowdown = speeds.get((name, "not private, compiled"), math.nan) / mine
    report.claim(f"{name}: times the compiled step without privacy", slowdown, "at most 1.7", slowdown <= 1.7)
    memory, theirs = memories.get((name, "dpal fused"), math.nan), memories.get((name, "Opacus hooks"), math.inf)
    report.claim(f"{name}: GiB, of Opacus hooks' {theirs:.1f}", memory, "less", memory < theirs)
    if targeted:
        report.claim(f"{name}: samples a second in bf16", mine, "at least 85,000", mine >= 85_000)


if __name__ == "__main__":
    main()
