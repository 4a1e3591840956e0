"""Progress on a terminal: steps, records per second, time left. Silent where the output is not a terminal."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class StepProgress:
    """Counts steps and records. Without a terminal it does nothing."""

    def __init__(self, description: str, steps: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self.task = self.progress.add_task(description, total=steps, speed="")
        self.records = 0

    def __enter__(self) -> "StepProgress":
        self.progress.start()
        return self

    def __exit__(self, *details: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.progress.stop()

    def step(self, expected_records: float) -> None:
        """Count one step. The speed shown is that of expected records: how many were drawn is private."""
        self.records += round(expected_records)
        elapsed = self.progress.tasks[0].elapsed or 0.0
        speed = f"{self.records / elapsed:,.0f} records/s" if elapsed > 0 else ""
        self.progress.update(self.task, advance=1, speed=speed)
