"""Commands that need no data: the ε of a training history, and plans."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpal.cli.app import Force, app, require_free
from dpal.errors import InvalidArgument
from dpal.planning import api
from dpal.planning.certify import load_plan
from dpal.planning.planners import PLANNERS, make_plan, plans_of_all
from dpal.planning.selections import SELECTIONS
from dpal.planning.setting import AIMS, MEAN_SCORE
from dpal.privacy.accountants import DEFAULT_ACCOUNTANT, accountant_named
from dpal.privacy.calibration import noise_multiplier_for
from dpal.privacy.mechanisms import PoissonSampledGaussian
from dpal.privacy.rounding import rounded_up
from dpal.reports.plain_words import exactly
from dpal.reports.plan_table import comparison, plan_view


def _noise(noise_multiplier: float) -> str:
    """Six decimals, rounded up, so that a printed noise multiplier is safe to use."""
    return f"{rounded_up(noise_multiplier, 6):.6f}"


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
    """Compute the ε of a DP-SGD training history, or the noise multiplier for a target ε.

    Each step takes every record with probability Q and adds Gaussian noise with standard deviation NOISE times the
    clipping norm.

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
        raise InvalidArgument("NOISE in --phase", "", "a number, unless --target-epsilon is given")
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
        table.add_row(
            str(index + 1), f"{probability:g}", _noise(noise or 0.0), str(steps), f"{rounded_up(so_far, 4):.4f}"
        )
    console = Console()
    console.print(table)
    if found is not None:
        console.print(f"noise multiplier [bold]{_noise(found)}[/bold] for ε ≤ {exactly(target_epsilon or 0.0)}")
    console.print(
        f"ε = [bold]{rounded_up(spent, 6):.6f}[/bold] at δ = {exactly(delta)} ({accountant}, one record blanked out)"
    )


@app.command("plan")
def plan_command(
    epsilon: Annotated[float, typer.Option(help="The ε of the promise, for training and selection together.")],
    delta: Annotated[
        float | None,
        typer.Option(help="The δ of the promise. Default: the power of ten at or below half of 1 / pool size."),
    ] = None,
    pool_size: Annotated[
        int, typer.Option(help="Records in the pool, the initial set included.")
    ] = api.DEFAULT_POOL_SIZE,
    initial: Annotated[
        int | None, typer.Option(help="Records labelled at the start. Default: a fifth of the pool.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="Sizes of the queries, such as 10000,3000,1000,1000.", metavar="N,N,…")
    ] = None,
    labelling_budget: Annotated[
        int | None, typer.Option(help="Labels in all, instead of --queries. Default: half of the pool.")
    ] = None,
    phases: Annotated[int | None, typer.Option(help="Training phases, instead of --queries. Default: 5.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="The expected batch size. Default: 40% of the initial set, at most 4096.")
    ] = None,
    epochs: Annotated[float, typer.Option(help="Epochs in each training phase.")] = api.DEFAULT_EPOCHS,
    selection: Annotated[
        str, typer.Option(help="How records are chosen: " + ", ".join(SELECTIONS) + ".", metavar="NAME")
    ] = "threshold",
    selection_epsilon: Annotated[
        float | None, typer.Option(help="The share of ε that selection may spend. Default: a quarter.")
    ] = None,
    selection_aim: Annotated[
        str,
        typer.Option(
            help="What threshold selection optimises: the mean score of what it takes, or overlap with the true top.",
            metavar="|".join(AIMS),
        ),
    ] = MEAN_SCORE,
    reads_training_data: Annotated[
        bool, typer.Option("--reads-training-data", help="The acquisition function reads labelled records too.")
    ] = False,
    planner: Annotated[str, typer.Option(help=", ".join(PLANNERS) + ".", metavar="NAME")] = api.DEFAULT_PLANNER,
    accounting: Annotated[
        str | None,
        typer.Option(help="basic (the paper's), renyi or branch (the tightest, the default).", metavar="NAME"),
    ] = None,
    accountant: Annotated[
        str, typer.Option(help="pld (tight) or rdp (comparable with the paper).", metavar="pld|rdp")
    ] = DEFAULT_ACCOUNTANT,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the plan to this file.", metavar="FILE")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw ε, rates and steps to this file (png, pdf or svg).", metavar="FILE")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Show all planners side by side.")] = False,
    force: Force = False,
) -> None:
    """Plan a whole campaign: steps, noise, sampling rates and selections, certified before any data is touched.

    Example: dpal plan --epsilon 8 --pool-size 50000 --initial 10000 --queries 10000,3000,1000,1000
    """
    console = Console()
    require_free(json_file, plot, force=force)
    setting = api.make_setting(
        target_epsilon=epsilon,
        target_delta=delta,
        pool_size=pool_size,
        initial_size=initial,
        query_sizes=None if queries is None else _sizes(queries),
        labelling_budget=labelling_budget,
        phases=phases,
        batch_size=batch_size,
        epochs=epochs,
        selection=selection,
        selection_epsilon=selection_epsilon,
        selection_aim=selection_aim,
        acquisition_reads_training_data=reads_training_data,
        accounting=accounting,
        accountant=accountant,
    )
    if compare:
        with console.status("planning …"):
            plans = plans_of_all(setting)
        console.print(comparison(plans))
        return
    with console.status("planning …"):
        made = make_plan(setting, planner)
    console.print(plan_view(made))
    if json_file is not None:
        json_file.write_text(made.to_text(), encoding="utf-8")
        console.print(f"written to {json_file}")
    if plot is not None:
        # Only here, since matplotlib is an extra.
        from dpal.reports.plan_plot import plot_plan

        plot_plan(made, plot)
        console.print(f"drawn to {plot}")


@app.command("show-plan")
def show_plan(
    file: Annotated[Path, typer.Argument(help="A plan written by dpal plan --json.")],
) -> None:
    """Read a plan, certify it again from its numbers alone, and show it. An edited plan is refused."""
    if not file.is_file():
        raise InvalidArgument("FILE", str(file), "the file of a plan (dpal plan --json)")
    Console().print(plan_view(load_plan(file)))


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidArgument("--queries", text, "whole numbers separated by commas, such as 10000,3000") from error
