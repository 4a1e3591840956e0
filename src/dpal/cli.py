"""The command line: parse, call, print."""

import json
import math
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpal import __version__
from dpal.errors import DpalError, InvalidArgument
from dpal.privacy.accountants import DEFAULT_ACCOUNTANT, accountant_named
from dpal.privacy.calibration import noise_multiplier_for
from dpal.privacy.mechanisms import PoissonSampledGaussian

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def main(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Differentially private active learning: one (ε, δ) promise for training and selection together."""
    if show_version:
        typer.echo(__version__)
        raise typer.Exit


def _phase(text: str) -> tuple[float, float | None, int]:
    """Q,NOISE,STEPS; NOISE may be left out."""
    parts = [part.strip() for part in text.split(",")]
    allowed = "Q,NOISE,STEPS such as 0.01,4,1000 (or Q,,STEPS with --target-epsilon)"
    if len(parts) != 3 or not parts[0] or not parts[2]:
        raise InvalidArgument("--phase", text, allowed)
    try:
        steps = float(parts[2])
        if steps != int(steps):
            raise InvalidArgument("STEPS in --phase", parts[2], "a whole number of at least 0")
        return float(parts[0]), float(parts[1]) if parts[1] else None, int(steps)
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("--phase", text, allowed) from error


@app.command()
def epsilon(
    phase: Annotated[
        list[str],
        typer.Option(
            help="One training phase, as Q,NOISE,STEPS: sampling probability, noise multiplier, number of steps. "
            "Repeat it for more phases. With --target-epsilon, leave NOISE out (Q,,STEPS).",
            metavar="Q,NOISE,STEPS",
        ),
    ],
    delta: Annotated[float, typer.Option(help="The δ of the promise; well below 1 / number of records.")] = 1e-5,
    accountant: Annotated[
        str, typer.Option(help="pld (tight) or rdp (comparable with the literature).", metavar="pld|rdp")
    ] = DEFAULT_ACCOUNTANT,
    target_epsilon: Annotated[
        float | None, typer.Option(help="Find the noise multiplier of the phases without one for this ε.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """The ε of a DP-SGD training history, or the noise multiplier for a target ε.

    Each step takes every record with probability Q and adds Gaussian noise of NOISE times the clipping norm.

    Example: dpal epsilon --phase 0.01,4,10000 --delta 1e-5
    """
    phases = [_phase(text) for text in phase]
    counted_by = accountant_named(accountant)
    open_phases = [(probability, steps) for probability, noise, steps in phases if noise is None]
    known = [
        (PoissonSampledGaussian(sampling_probability=probability, noise_multiplier=noise), steps)
        for probability, noise, steps in phases
        if noise is not None
    ]
    found: float | None = None
    if target_epsilon is not None:
        if not open_phases:
            raise InvalidArgument("--phase", phase[0], "without NOISE (Q,,STEPS) where --target-epsilon is given")
        found = noise_multiplier_for(
            target_epsilon=target_epsilon,
            target_delta=delta,
            phases=open_phases,
            history=known,
            accountant=counted_by,
        )
    elif open_phases:
        raise InvalidArgument("NOISE in --phase", "", "given, unless --target-epsilon asks for it")
    filled = [(probability, noise or found, steps) for probability, noise, steps in phases]
    history = [
        (PoissonSampledGaussian(sampling_probability=probability, noise_multiplier=noise or 0.0), steps)
        for probability, noise, steps in filled
    ]
    spent = counted_by.epsilon(history, delta)
    if as_json:
        document = {
            "epsilon": spent,
            "delta": delta,
            "accountant": accountant,
            "target_epsilon": target_epsilon,
            "noise_multiplier": found,
            "phases": [
                {"sampling_probability": probability, "noise_multiplier": noise, "steps": steps}
                for probability, noise, steps in filled
            ],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    table = Table(title="Training phases")
    for heading in ("phase", "sampling probability", "noise multiplier", "steps", "ε so far"):
        table.add_column(heading, justify="right")
    for index, (probability, noise, steps) in enumerate(filled):
        so_far = counted_by.epsilon(history[: index + 1], delta)
        table.add_row(str(index + 1), f"{probability:g}", f"{noise:.6g}", str(steps), f"{so_far:.4f}")
    console = Console()
    console.print(table)
    if found is not None:
        # Rounded up: the printed number is safe to use.
        console.print(f"noise multiplier [bold]{math.ceil(found * 1e6) / 1e6:.6f}[/bold] for ε ≤ {target_epsilon:g}")
    console.print(f"ε = [bold]{spent:.6f}[/bold] at δ = {delta:g} ({accountant}, add-or-remove one record)")


def run() -> None:
    """The entry point: errors that dpal raises on purpose become one line and exit code 2."""
    try:
        app()
    except DpalError as error:
        Console(stderr=True, soft_wrap=True).print(f"[red]error:[/red] {error}", highlight=False)
        sys.exit(2)
