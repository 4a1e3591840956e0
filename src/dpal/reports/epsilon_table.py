"""The explanation of an ε as text and tables for a terminal."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dpal.reports.epsilon_explanation import (
    ADVICE,
    HOW_TO_CHOOSE,
    NOT_SAID,
    PUBLISHED,
    EpsilonExplanation,
    PublishedEpsilon,
    WorstCase,
    several_sentences,
)
from dpal.reports.plain_words import exactly, percent_at_most

_SMALL = 0.1


def epsilon_view(explanation: EpsilonExplanation) -> RenderableType:
    """From the worst case to how to choose."""
    epsilon, delta = exactly(explanation.epsilon), exactly(explanation.delta)
    parts: list[RenderableType] = [Text(f"ε = {epsilon}, δ = {delta}, for one record\n", style="bold")]
    if explanation.protects_little is not None:
        parts.append(Panel(Text(explanation.protects_little, style="bold red"), border_style="red"))
    parts += [Text(f"{explanation.worst_case} {explanation.rare_suspicion}\n")]
    parts += [Text("How far a suspicion that a record was used can grow, at most:"), _odds(explanation)]
    parts.append(Text("δ is counted as a probability that everything about a record is revealed."))
    if explanation.pool_size is None:
        parts.append(Text("It should be far below 1 / number of records; --pool-size checks this."))
    parts += [_heading("What it does not say"), _points(NOT_SAID)]
    parts += [_heading("Several records of one person"), *map(Text, several_sentences(explanation))]
    parts += [_heading("What others use"), _points((*map(_published, PUBLISHED), *ADVICE))]
    parts += [_heading("How to choose"), _points(HOW_TO_CHOOSE), Text("\nMore: docs/epsilon.md")]
    return Group(*parts)


def _heading(words: str) -> Text:
    return Text(f"\n{words}", style="bold")


def _points(sentences: tuple[str, ...]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for sentence in sentences:
        grid.add_row("-", sentence)
    return grid


def _odds(explanation: EpsilonExplanation) -> Table:
    table = Table()
    for heading in ("ε", "from 50%", "from 1% (1 in 100)"):
        table.add_column(heading, justify="right")
    for row in explanation.worst_cases:
        asked = row.epsilon == explanation.epsilon
        table.add_row(*_cells(row), style="bold" if asked else "")
    return table


def _cells(row: WorstCase) -> tuple[str, str, str]:
    return (
        exactly(row.epsilon),
        percent_at_most(row.from_even),
        f"{percent_at_most(row.from_rare)}{one_in(row.from_rare)}",
    )


def one_in(probability: float) -> str:
    """A small probability also as "1 in so many", which many people read more easily; rounded to the safe side."""
    return f" (1 in {int(1.0 / probability)})" if probability <= _SMALL else ""


def _published(entry: PublishedEpsilon) -> str:
    return f"{entry.who}, {entry.purpose}: ε = {entry.epsilon}, for {entry.protects} ({entry.source})"
