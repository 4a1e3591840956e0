"""Commands that need no data: the ε of a training history, and plans."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dpal.campaign.default_model import ENCODERS
from dpal.cli.app import WARNING, Force, app, require_free
from dpal.cli.options import with_options_of
from dpal.cli.planned_model import planned_model, warning_for
from dpal.cli.several_records import show_several_records
from dpal.errors import InvalidArgument
from dpal.planning.certification import load_plan
from dpal.planning.planners import plans_of_all
from dpal.planning.request import DEFAULT_POOL_SIZE, PlanRequest
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
    source: Annotated[
        Path | None,
        typer.Argument(
            help="With --records-per-person: a plan's file (dpal plan --json), a campaign's folder, or the JSON file "
            "of a certificate.",
            metavar="[PLAN|CAMPAIGN]",
        ),
    ] = None,
    phase: Annotated[
        list[str] | None,
        typer.Option(
            help="One training phase, as Q,NOISE,STEPS: sampling probability, noise multiplier, number of steps. "
            "Repeat it for more phases. With --target-epsilon, leave NOISE out (Q,,STEPS).",
            metavar="Q,NOISE,STEPS",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="The δ of the promise; well below 1 / number of records. 1e-5 unless given.", show_default=False
        ),
    ] = None,
    accountant: Annotated[
        str, typer.Option(help="pld (tight) or rdp (comparable with the literature).", metavar="pld|rdp")
    ] = DEFAULT_ACCOUNTANT,
    target_epsilon: Annotated[
        float | None, typer.Option(help="Find the noise multiplier of the phases without one for this ε.")
    ] = None,
    records_per_person: Annotated[
        str | None,
        typer.Option(
            help="What a plan or campaign costs someone with so many records: numbers such as 1,2,5,30.",
            metavar="NUMBERS",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compute the ε of a DP-SGD training history, or the noise multiplier for a target ε.

    Each step takes every record with probability Q and adds Gaussian noise with standard deviation NOISE times the
    clipping norm.

    With a plan, a campaign or a certificate: the ε of people with several records.

    Example: dpal epsilon --phase 0.01,4,10000 --delta 1e-5, or dpal epsilon plan.json --records-per-person 1,2,5
    """
    if source is not None or records_per_person is not None:
        if phase or delta is not None or target_epsilon is not None:
            raise InvalidArgument(
                "--records-per-person", records_per_person, "with a plan or a campaign, and without other options"
            )
        show_several_records(source, records_per_person, as_json=as_json)
        return
    if not phase:
        raise InvalidArgument("--phase", "", "given, as Q,NOISE,STEPS; or name a plan or a campaign")
    delta = 1e-5 if delta is None else delta
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
@with_options_of(PlanRequest)
def plan_command(
    *,
    pool_size: Annotated[int, typer.Option(help="Records in the pool, the initial set included.")] = DEFAULT_POOL_SIZE,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the plan to this file.", metavar="FILE")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw ε, rates and steps to this file (png, pdf or svg).", metavar="FILE")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Show all planners side by side.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="Say whether the noise leaves this model enough to learn from, and what would help: resnet9, "
            "small-cnn, …, or an encoder such as efficientnet-lite0, which is planned for as dpal init does.",
            metavar="NAME",
        ),
    ] = None,
    classes: Annotated[int, typer.Option(help="With --model: how many classes there are.")] = 2,
    parameters: Annotated[
        int | None, typer.Option(help="Instead of --model: how many parameters it trains.", metavar="N")
    ] = None,
    force: Force = False,
    **request: Any,
) -> None:
    """Plan a whole campaign: steps, noise, sampling rates and selections, certified before any data is touched.

    Example: dpal plan --epsilon 8 --pool-size 50000 --initial 10000 --queries 10000,3000,1000,1000
    """
    console = Console()
    require_free(json_file, plot, force=force)
    asked = PlanRequest(**request)
    judged = planned_model(model, classes=classes, parameters=parameters)
    if model in ENCODERS:
        asked = asked.for_encoder(pool_size)
    if compare:
        with console.status("planning …"):
            plans = plans_of_all(asked.resolve(pool_size))
        console.print(comparison(plans))
        return
    with console.status("planning …"):
        made = asked.plan(pool_size)
        too_noisy = warning_for(judged, asked, made)
    console.print(plan_view(made))
    if too_noisy is not None:
        console.print(too_noisy, style=WARNING, markup=False, highlight=False, soft_wrap=True)
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
