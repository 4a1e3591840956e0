"""A campaign's status and verification for a terminal."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dpal.campaign.status import Status
from dpal.campaign.verification import Verification
from dpal.planning.promises import WORDS
from dpal.planning.unit_words import plural, unit_sentence, whether_used
from dpal.privacy.rounding import rounded_up
from dpal.reports.plain_words import exactly, guess_sentence, little_because

NOT_PRIVATE = "NOT PRIVATE: made with a seed or a selection that protects nobody. For simulations only."
# Shown above every number that depends on private records.
INTERNAL = "internal (not covered by the promise; do not pass on)"


def status_view(status: Status, running: str | None = None) -> RenderableType:
    """What is done, what is next, what was spent."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("campaign", Text(status.folder, style="bold"))
    # A step that is charged but not recorded yet was interrupted, unless a process is working on it.
    table.add_row("stage", status.stage.replace("-", " ") if running is None else f"running: {running}")
    table.add_row("next" if running is None else "now", status.next_step)
    given_up = "".join(f", phase {phase} given up" for phase in status.phases_given_up)
    table.add_row("phases", f"{status.phases_done} of {status.phases} trained{given_up}")
    numbers = "" if status.asked is None else f"; {_numbers(status.asked, status.retired)}"
    table.add_row("pool", f"{status.pool_size:,} {plural(status.unit)}{numbers}")
    if (of_unit := unit_sentence(status.unit)) is not None:
        table.add_row("unit", Text(of_unit))
    if status.is_private:
        table.add_row("promise", WORDS[status.selections].short)
    table.add_row(
        "privacy",
        f"ε {rounded_up(status.epsilon_spent, 4):.4f} of {exactly(status.epsilon_budget)} at "
        f"δ = {exactly(status.target_delta)}, spent by all charges so far",
    )
    if (
        little := little_because(status.epsilon_budget, status.target_delta, status.pool_size, status.unit)
    ) is not None:
        guess = guess_sentence(status.epsilon_budget, status.target_delta, whether=whether_used(status.unit))
        table.add_row("", Text(f"{little} {guess}", style="bold red"))
    if status.encoder is not None:
        table.add_row("encoder", Text(status.encoder))
    for metrics, words in zip(status.metrics, status.held_out_in_words, strict=True):
        table.add_row(f"phase {metrics['phase']:.0f}", Text(f"{words}."))
    for phase in status.went_on_after:
        table.add_row("", f"told to go on after phase {phase}, although its model is no better than chance")
    return _flagged(Group(table, Text(f"\n{INTERNAL}", style="yellow"), _internal(status)), status.is_private)


def _numbers(asked: int, retired: int | None) -> str:
    return f"{asked:,} asked about, {retired or 0:,} retired"


def _internal(status: Status) -> RenderableType:
    internal = status.internal
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    if internal.asked is not None:
        table.add_row(plural(status.unit), _numbers(internal.asked, internal.retired))
    table.add_row(
        "labels",
        f"{internal.labelled:,} given, {internal.waiting_for_labels:,} missing, {internal.skipped:,} skipped, "
        f"{internal.cannot_tell:,} cannot tell, {internal.corrected:,} corrected",
    )
    if internal.in_inbox:
        table.add_row("inbox", f"{internal.in_inbox:,} from the labelling page, taken in before the next step")
    if internal.withdrawn:
        table.add_row("withdrawn", f"{internal.withdrawn:,} records, for good")
    if internal.resumed:
        table.add_row("resumed", f"{internal.resumed} times after an interruption")
    table.add_row("last change", internal.last_change)
    return table


def verification_view(verification: Verification) -> RenderableType:
    """Every check with its verdict."""
    table = Table(title="verification", title_justify="left")
    for heading in ("what", "", "detail"):
        table.add_column(heading)
    for check in verification.checks:
        table.add_row(check.what, "[green]holds[/green]" if check.holds else "[red]FAILS[/red]", check.detail)
    verdict = Text(
        f"ε = {rounded_up(verification.epsilon_spent, 6):.6f} of {exactly(verification.epsilon_budget)} at "
        f"δ = {exactly(verification.target_delta)}: " + ("verified" if verification.holds else "NOT VERIFIED"),
        style="bold green" if verification.holds else "bold red",
    )
    promise = [Text(WORDS[verification.selections].short)] if verification.is_private else []
    return _flagged(Group(table, verdict, *promise), verification.is_private)


def _flagged(view: RenderableType, is_private: bool) -> RenderableType:
    return view if is_private else Group(view, Panel(Text(NOT_PRIVATE, style="bold red"), border_style="red"))
