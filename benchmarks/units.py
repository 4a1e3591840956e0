"""CPU seconds of a training step with units of one record, of several records, and without a table of units.

A table with one column should cost nothing. Phases with and without it take turns, with the same draws, on one
thread; its CPU time is what counts, so that whatever else the machine does disturbs little.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from _report import Report, arguments
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.models import SmallCNN
from dpal.planning.plan import Phase
from dpal.randomness import SeededRandomness
from dpal.training.loop import train_phase
from dpal.training.losses import cross_entropy
from dpal.training.sampling import BLANK
from dpal.training.settings import ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource

SLOWDOWN = 1.03
ROWS = 4


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    model: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]
    units: int
    expected: float
    steps: int


WORKLOADS = (
    Workload(
        name="a head on 1,280 features",
        model=lambda: nn.Linear(1280, 10),
        inputs=lambda count: torch.randn(count, 1280),
        units=2_000,
        expected=256.0,
        steps=20,
    ),
    Workload(
        name="a small CNN, 28 × 28",
        model=lambda: SmallCNN(channels=1, classes=10),
        inputs=lambda count: torch.randn(count, 1, 28, 28),
        units=500,
        expected=32.0,
        steps=10,
    ),
)


def steps_of(workload: Workload, source: TensorSource, units: NDArray[np.int64] | None, seed: int) -> list[float]:
    """CPU seconds of each step but the first."""
    torch.manual_seed(0)
    model, ends = workload.model(), [0.0]
    train_phase(
        model,
        Phase(
            steps=workload.steps + 1,
            noise_multiplier=1.0,
            expected_batch_size=workload.expected,
            sampling_probabilities=(workload.expected / workload.units,),
        ),
        source=source,
        groups=[np.arange(workload.units)],
        loss=cross_entropy,
        settings=TrainingSettings(),
        compute=ComputeSettings(device="cpu"),
        randomness=SeededRandomness(seed=seed, nothing_is_private=True),
        after_step=lambda _: ends.append(time.process_time()),
        units=units,
    )
    return np.diff(ends[1:]).tolist()


def measure(report: Report, workload: Workload, turns: int) -> None:
    source = TensorSource(workload.inputs(workload.units), torch.randint(0, 10, (workload.units,)))
    many = TensorSource(workload.inputs(workload.units * ROWS), torch.randint(0, 10, (workload.units * ROWS,)))
    one_column = np.arange(workload.units)[:, None]
    # From one record to all: every unit takes the time of a full one.
    ragged = np.arange(workload.units * ROWS).reshape(workload.units, ROWS)
    ragged = np.where(np.arange(ROWS) <= np.arange(workload.units)[:, None] % ROWS, ragged, BLANK)
    seconds: dict[str, list[float]] = {"no table": [], "units of one record": [], f"units of up to {ROWS}": []}
    for turn in range(turns):
        # Each goes first as often as the other.
        pair = [("no table", None), ("units of one record", one_column)]
        for name, units in pair if turn % 2 == 0 else pair[::-1]:
            seconds[name] += steps_of(workload, source, units, seed=turn)
        if turn % 4 == 0:
            seconds[f"units of up to {ROWS}"] += steps_of(workload, many, ragged, seed=turn)
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    for name, median in medians.items():
        report.row(
            what=f"{workload.name}: {name}", milliseconds_a_step=1e3 * median, ratio=median / medians["no table"]
        )
    # The draws are the same step by step, so that steps can be compared in pairs.
    pairs = zip(seconds["units of one record"], seconds["no table"], strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    report.claim(
        f"{workload.name}: units of one record against no table, median ratio of the same step",
        ratio,
        f"at most {SLOWDOWN:g}",
        ratio <= SLOWDOWN,
    )


def main() -> None:
    options = arguments(__doc__)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    report = Report(name="units", packages=("torch",))
    for workload in WORKLOADS:
        measure(report, workload, turns=2 if options.quick else 40)
    report.finish(options.json)


if __name__ == "__main__":
    main()
