"""Progress on a terminal."""

import io

from rich.console import Console

from dpal.training.progress import StepProgress


def test_progress_is_for_terminals_only() -> None:
    for is_terminal in (True, False):
        text = io.StringIO()
        console = Console(file=text, force_terminal=is_terminal, width=100)
        with StepProgress("phase 1", 3, console) as progress:
            for _ in range(3):
                progress.step(10.0)
        assert ("phase 1" in text.getvalue()) is is_terminal
