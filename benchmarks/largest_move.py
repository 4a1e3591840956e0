"""How far one record moves a clipped sum, at most: on records made to break the bound, in every engine and precision.

The bound is 1. Ties: identical records tuned to rounding ties, and one more that pulls the other way. Kinks: records
whose gradient depends on how a row is rounded. ResNet-9: a sum is what each record gives alone in its seat.
"""

import warnings

import torch
from _report import Report, arguments

from dpal.audit.worst_cases import KINK_WIDTHS, Kink, Tie, flat_sum, kinks, move, ties
from dpal.models.resnet9 import ResNet9
from dpal.training.engines.engine import ClippingEngine
from dpal.training.engines.fused_engine import FusedEngine
from dpal.training.engines.opacus_engine import OpacusEngine
from dpal.training.engines.vmap_engine import VmapEngine
from dpal.training.learner import put_channels_last
from dpal.training.losses import cross_entropy

ON_GPU = torch.cuda.is_available()
ENGINES: tuple[tuple[type[ClippingEngine], str], ...] = (
    (FusedEngine, "bf16"),
    (FusedEngine, "tf32"),
    (FusedEngine, "float32"),
    (VmapEngine, "float32"),
    (OpacusEngine, "float32"),
)
OTHERS = (1, 2, 3, 4, 5, 63, 255, 511, 1023, 2047, 4095)
RECORDS = 24


def made(kind: type[ClippingEngine], model: torch.nn.Module, precision: str) -> ClippingEngine:
    return kind(model=model.train(), loss=cross_entropy, max_grad_norm=1.0, precision=precision)


def ties_move(kind: type[ClippingEngine], precision: str, tunings: int) -> float:
    engine = made(kind, Tie(), precision)
    # One number of rows for all, so that one graph is compiled.
    return max(
        move(engine, *ties(others, tuning, clipped=clipped), OTHERS[-1] + 1)
        for others in OTHERS
        for clipped in (True, False)
        for tuning in range(tunings)
    )


def kinks_move(kind: type[ClippingEngine], precision: str) -> float:
    worst = 0.0
    for width in KINK_WIDTHS:
        model = Kink(width)
        engine = made(kind, model, precision)
        for others in range(1, 9):
            inputs = kinks(model, others)
            if inputs is not None:
                worst = max(worst, move(engine, inputs, torch.ones(others + 1, dtype=torch.int64), 16))
    return worst


def resnet_parts(kind: type[ClippingEngine], precision: str) -> tuple[float, float]:
    """The largest contribution of one record, and how far the sum is from that of all contributions."""
    torch.manual_seed(1)
    model = ResNet9(channels=3, classes=4)
    put_channels_last(model)
    engine = made(kind, model, precision)
    inputs = torch.randn(RECORDS, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    targets = torch.randint(0, 4, (RECORDS,))
    whole = flat_sum(engine, inputs, targets)
    parts = [flat_sum(engine, inputs, targets, torch.arange(RECORDS) == seat) for seat in range(RECORDS)]
    return max(float(part.norm()) for part in parts), float((torch.stack(parts).sum(dim=0) - whole).norm())


def main() -> None:
    options = arguments(__doc__)
    warnings.filterwarnings("ignore")
    if ON_GPU:
        torch.set_default_device("cuda")
    report = Report(name="largest_move", packages=("torch", "opacus"))
    for kind, precision in ENGINES:
        if precision == "tf32" and not ON_GPU:
            continue
        name = f"{kind.name}, {precision}"
        tied, kinked = ties_move(kind, precision, 2 if options.quick else 12), kinks_move(kind, precision)
        largest, apart = resnet_parts(kind, precision)
        report.row(what=name, ties=tied, kinks=kinked, resnet_9=largest, sum_without_its_parts=apart)
        report.claim(f"{name}: largest move", max(tied, kinked, largest), "at most 1", max(tied, kinked, largest) <= 1)
        report.claim(f"{name}: sum − Σ of what each gives alone", apart, "at most 1e-12", apart <= 1e-12)
    extra: dict[str, object] = {"accelerator": torch.cuda.get_device_name()} if ON_GPU else {}
    report.finish(options.json, **extra)


if __name__ == "__main__":
    main()
