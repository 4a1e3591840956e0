"""The commands by name, each with its module and what help says of it. A module is imported when its command runs.

Help and quick commands start in half the time without the others. A test holds this table and the commands together.
"""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "audit": (
        "audit",
        "Attack a plan with dpal's own code and made-up records, and compare what is found with the promise.",
    ),
    "certificate": (
        "certificates",
        "Write the privacy certificate: a PDF for people, and JSON that dpal verify recomputes anywhere.",
    ),
    "run": (
        "campaigns",
        "Continue until labels are missing or everything is done. It can be stopped and run again at any time.",
    ),
    "give-up": (
        "campaigns",
        "Give up a training phase that is charged and cannot finish, and let the campaign continue.",
    ),
    "status": (
        "campaigns",
        "Show where a campaign stands: what is done, what is next, what was spent. Works while it runs.",
    ),
    "verify": (
        "campaigns",
        "Recompute every ε from what was recorded and compare with the plan. Exit code 5 if anything does not hold.",
    ),
    "report": (
        "campaigns",
        "Write the campaign's report: one HTML file that opens anywhere, and the same as JSON next to it.",
    ),
    "withdraw": (
        "campaigns",
        "Remove records from a campaign for good, such as after a withdrawn consent. It continues without them.",
    ),
    "export-model": (
        "campaigns",
        "Write the newest model's weights, and what was promised about it in FILE.json, and for people in FILE.md.",
    ),
    "compare": (
        "comparisons",
        "Compare campaigns: curves with bands over repeated runs, and tables for documents and papers.",
    ),
    "histogram": (
        "comparisons",
        "Draw the scores of all records and of the selected ones, query by query. Simulations only: scores are private.",  # noqa: E501
    ),
    "demo": (
        "demo",
        "Run eight whole private campaigns on 1,437 real digits, in two minutes: random labels against the private cut.",  # noqa: E501
    ),
    "explain": (
        "explain",
        "Explain what an ε means: the worst case in words, what it does not say, what others use, how to choose.",
    ),
    "init": (
        "init",
        "Plan a campaign and create its folder. On a terminal, without --config or --data, it asks for the settings.",
    ),
    "epsilon": ("plans", "Compute the ε of a DP-SGD training history, or the noise multiplier for a target ε."),
    "plan": (
        "plans",
        "Plan a whole campaign: steps, noise, sampling rates and selections, certified before any data is touched.",
    ),
    "show-plan": (
        "plans",
        "Read a plan, certify it again from its numbers alone, and show it. An edited plan is refused.",
    ),
    "rehearse": (
        "rehearse",
        "Run the very plan, model and number of labels on public records, and forecast accuracy and time.",
    ),
    "serve": (
        "serve",
        "Serve the page on which experts label, and the dashboard, until Ctrl-C. Prints a link for each person.",
    ),
    "keys": ("certificates", "Make keys for signing certificates."),
    "experiments": ("experiments", "The paper's tables and figures as named runs that resume."),
    "experts": ("experts", "Say who labels on the page, who sees what, and what they are told."),
    "export": ("exports", "Write a finished campaign's public facts to other tools."),
    "labels": ("labels", "Give records to people and import their labels."),
}


class Commands(TyperGroup):
    """All commands of the table, in its order; those whose modules are not imported yet know their names and help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        known = dict(self.commands)
        listed = {name: known.pop(name, None) or _NotImported(name, words) for name, (_, words) in COMMANDS.items()}
        self.commands = {**listed, **known}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and isinstance(self.commands.get(args[0]), _NotImported):
            self.commands[args[0]] = imported(args[0])
        return super().resolve_command(ctx, args)


class _NotImported(TyperCommand):
    def __init__(self, name: str, words: str) -> None:
        super().__init__(name, help=words, rich_markup_mode="rich")


def imported(name: str) -> Any:
    """The command itself."""
    from dpal.cli.app import app

    import_module(f"dpal.cli.{COMMANDS[name][0]}")
    return typer.main.get_group(app).commands[name]
