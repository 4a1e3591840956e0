"""Progress from the first second: a bar or a pulse on a terminal, a plain line now and then in a log.

What is counted is public: steps, and records as planned or of the whole pool. Times depend on what was drawn, so they
are for the people who run it, like all of this output.
"""

import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

Item = TypeVar("Item")

# In a log: what takes this long is mentioned, and then again after each of these intervals.
FIRST_SECONDS = 1.0
LINE_SECONDS = 60.0
_TICK_SECONDS = 0.2


@contextmanager
def doing(words: str) -> Generator[None]:
    """Show what happens now, until the block ends."""
    with Activity(words):
        yield


def counted(items: Iterable[Item], words: str, *, total: int, each: int = 1) -> Iterator[Item]:
    """The items, while showing how far they have come: `each` more of `total` after every item."""
    with Activity(words, total) as activity:
        for item in items:
            yield item
            activity.advance(min(each, total - activity.done))


def silence() -> None:
    """Show nothing in this process: another one speaks for it."""
    _shown.is_silent = True


def lines_now() -> list[str]:
    """What this process is doing now, the outermost activity first; empty if nothing takes long."""
    return _shown.lines()


class Activity:
    """Something that takes time, and how far it has come. Activities may be nested: the innermost one is in the log."""

    def __init__(self, words: str, total: int | None = None, *, console: Console | None = None) -> None:
        self.words, self.total, self.done = words, total, 0
        self.console = console or Console(stderr=True)
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        self.started = time.monotonic()
        _shown.begin(self)
        return self

    def __exit__(self, *details: type[BaseException] | BaseException | TracebackType | None) -> None:
        _shown.end(self)

    def advance(self, count: int = 1) -> None:
        self.done += count
        _shown.update(self)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def position(self) -> str:
        """How far it has come."""
        return "" if self.total is None else f"{self.done:,} of {self.total:,}"

    def remarks(self) -> str:
        """What else there is to say: here, how long it has taken."""
        return f"{in_words(self.seconds)} so far"

    def line(self) -> str:
        """All of it, for a log."""
        position = self.position()
        return f"{self.words}: {position}, {self.remarks()}" if position else f"{self.words} ({self.remarks()})"


class StepProgress(Activity):
    """The steps of a training phase, with the time that is left: for the phase, and for all phases of the plan.

    The first step is not counted, since it compiles and warms up. Later phases are expected to take as long for each
    expected record as this one.
    """

    def __init__(
        self,
        words: str,
        steps: int,
        *,
        batch_size: float,
        later_records: float = 0.0,
        begins_after: int = 0,
        console: Console | None = None,
    ) -> None:
        super().__init__(words, steps, console=console)
        self.steps, self.batch_size, self.later_records = steps, batch_size, later_records
        # Steps that were done before, by a process that died.
        self.begins_after = self.done = begins_after
        self._first_ended = self._last_ended = 0.0

    def step(self) -> None:
        """Count one step. The speed shown is that of expected records: how many were drawn is private."""
        self._last_ended = time.monotonic()
        if self.done == self.begins_after:
            self._first_ended = self._last_ended
        self.advance()

    def position(self) -> str:
        return f"step {self.done:,} of {self.steps:,}"

    def remarks(self) -> str:
        done_here = self.done - self.begins_after
        if done_here < 2:
            return "warming up; the first step takes longer"
        each = (self._last_ended - self._first_ended) / (done_here - 1)
        left = (self.steps - self.done) * each
        later = self.later_records * each / self.batch_size
        speed = f"{self.batch_size / each:,.0f} records/s" if each > 0 else ""
        said = f"{speed}, {in_words(left)} left" if speed else f"{in_words(left)} left"
        return f"{said}, {in_words(left + later)} for all phases" if self.later_records else said


def in_words(seconds: float) -> str:
    """A time, as exactly as anyone wants to know it."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


class _Shown:
    """What is shown now. One per process, since activities share one screen."""

    def __init__(self) -> None:
        self.is_silent = False
        self._lock = threading.RLock()
        self._open: list[Activity] = []
        self._bars: Progress | None = None
        self._tasks: dict[int, TaskID] = {}
        self._stopped = threading.Event()
        self._mentioned: Activity | None = None
        self._last_line = 0.0

    def begin(self, activity: Activity) -> None:
        with self._lock:
            self._open.append(activity)
            if self.is_silent:
                return
            if activity.console.is_terminal:
                self._draw(activity)
            elif len(self._open) == 1:
                self._stopped = threading.Event()
                threading.Thread(target=self._write_lines, args=(self._stopped,), daemon=True).start()

    def end(self, activity: Activity) -> None:
        with self._lock:
            if activity in self._open:
                self._open.remove(activity)
            task = self._tasks.pop(id(activity), None)
            if self._bars is not None and task is not None:
                self._bars.remove_task(task)
            if not self._open:
                self._stopped.set()
                if self._bars is not None:
                    self._bars.stop()
                    self._bars = None

    def update(self, activity: Activity) -> None:
        with self._lock:
            task = self._tasks.get(id(activity))
            if self._bars is not None and task is not None:
                self._bars.update(
                    task, completed=activity.done, position=activity.position(), remarks=_beside_a_bar(activity)
                )

    def lines(self) -> list[str]:
        with self._lock:
            return [activity.line() for activity in self._open]

    def _draw(self, activity: Activity) -> None:
        if self._bars is None:
            columns = ("{task.description}", "{task.fields[position]}", "{task.fields[remarks]}")
            first, *rest = (TextColumn(column, markup=False) for column in columns)
            self._bars = Progress(first, BarColumn(), *rest, console=activity.console, transient=True)
            self._bars.start()
        remarks = _beside_a_bar(activity)
        task = self._bars.add_task(activity.words, total=activity.total, position=activity.position(), remarks=remarks)
        self._tasks[id(activity)] = task

    def _write_lines(self, stopped: threading.Event) -> None:
        while not stopped.wait(_TICK_SECONDS):
            with self._lock:
                if stopped.is_set() or not self._open:
                    return
                newest = self._open[-1]
                is_due = newest is not self._mentioned or time.monotonic() - self._last_line >= LINE_SECONDS
                if is_due and newest.seconds >= FIRST_SECONDS:
                    newest.console.print(newest.line(), markup=False, highlight=False, soft_wrap=True)
                    self._mentioned, self._last_line = newest, time.monotonic()


def _beside_a_bar(activity: Activity) -> str:
    return activity.remarks() if isinstance(activity, StepProgress) else ""


_shown = _Shown()
