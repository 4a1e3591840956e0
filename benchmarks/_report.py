"""What every benchmark shares: timing, the table, and the JSON file with claims, device and versions."""

import argparse
import importlib
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(kw_only=True)
class Report:
    """Rows to print and claims to hold; `finish` prints and writes both."""

    name: str
    packages: Sequence[str]
    rows: list[dict[str, object]] = field(default_factory=list)
    claims: list[dict[str, object]] = field(default_factory=list)

    def row(self, **cells: object) -> None:
        self.rows.append(cells)

    def claim(self, text: str, measured: float, target: str, holds: bool) -> None:
        self.claims.append({"claim": text, "measured": measured, "target": target, "holds": holds})

    def finish(self, json_file: Path | None, **extra: object) -> None:
        console = Console()
        if self.rows:
            table = Table(title=self.name)
            for heading in self.rows[0]:
                table.add_column(heading.replace("_", " "), justify="left" if heading == "what" else "right")
            for row in self.rows:
                table.add_row(*(f"{cell:,.4g}" if isinstance(cell, float) else str(cell) for cell in row.values()))
            console.print(table)
        for claim in self.claims:
            verdict = "[green]holds[/green]" if claim["holds"] else "[red]does not hold[/red]"
            console.print(f"{claim['claim']}: {claim['measured']:,.4g} (target {claim['target']}) {verdict}")
        if json_file is not None:
            document = {
                "benchmark": self.name,
                "claims": self.claims,
                "rows": self.rows,
                "device": device(),
                "versions": {package: _version(package) for package in ("dpal", "numpy", "scipy", *self.packages)},
                **extra,
            }
            json_file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
            console.print(f"written to {json_file}")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds of one call: the median over repetitions, and the fastest."""

    median: float
    fastest: float

    def as_row(self) -> dict[str, float]:
        return asdict(self)


def timed(
    call: Callable[[], object],
    *,
    repetitions: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    for _ in range(warm_up):
        call()
    seconds: list[float] = []
    for _ in range(repetitions):
        start = clock()
        call()
        seconds.append(clock() - start)
    return Timing(median=statistics.median(seconds), fastest=min(seconds))


def device() -> dict[str, object]:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = f"{len(names)} × {names[0]}" if names else model
    return {"cpu": model, "system": platform.system(), "python": platform.python_version()}


def arguments(description: str | None, *, plots: bool = False) -> argparse.Namespace:
    command = parser(description)
    if plots:
        command.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the results there (not with --quick)")
    return command.parse_args()


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark, for those that have more."""
    command = argparse.ArgumentParser(description=description)
    command.add_argument("--quick", action="store_true", help="fewer repetitions: ends within 50 s on two cores")
    command.add_argument("--json", type=Path, metavar="FILE", help="write claims, rows, device and versions")
    return command


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        # Run from a source tree, or a package that was only copied.
        module = importlib.import_module(package.replace("-", "_"))
        return getattr(module, "__version__", None)
