"""The paper's experiments: list, run, table."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpal.cli.app import Force, app, require_free
from dpal.errors import InvalidArgument

experiments = typer.Typer(no_args_is_help=True, help="The paper's tables and figures as named runs that resume.")
app.add_typer(experiments, name="experiments")

_Scale = Annotated[str, typer.Option(help="full, laptop or smallest; small scales say so in everything they print.")]
_Results = Annotated[Path, typer.Option(help="The folder of results, one small JSON file per run.")]
_Seeds = Annotated[list[int] | None, typer.Option("--seed", help="Only these seeds; repeat it for more.")]
_RESULTS = Path("experiments") / "results"


@experiments.command("list")
def list_experiments() -> None:
    """List every experiment with its numbers of rows and seeds."""
    from dpal.experiments.catalogue import EXPERIMENTS

    table = Table()
    for heading in ("name", "what", "rows", "seeds"):
        table.add_column(heading, justify="right" if heading in ("rows", "seeds") else "left")
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, experiment.title, str(len(experiment.rows)), str(len(experiment.seeds)))
    Console().print(table)


@experiments.command("run")
def run_experiment(
    name: Annotated[str, typer.Argument(help="An experiment from dpal experiments list.")],
    scale: _Scale = "laptop",
    seed: _Seeds = None,
    row: Annotated[list[str] | None, typer.Option(help="Only these rows, or all of these tasks.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the campaigns go.")] = Path("experiments") / "runs",
    results: _Results = _RESULTS,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    precision: Annotated[str, typer.Option(help="float32; tf32 or bf16 on GPUs.")] = "float32",
    physical_batch: Annotated[int, typer.Option(help="Images on the device at once.", min=1)] = 512,
) -> None:
    """Run what is not finished yet. Start it in several processes to share the work; finished runs are not repeated.

    Example: dpal experiments run headline --scale laptop
    """
    from dpal.experiments.catalogue import experiment_named
    from dpal.experiments.results import Results
    from dpal.experiments.sweep import Sweep
    from dpal.training.settings import ComputeSettings

    console = Console(highlight=False)
    sweep = Sweep(
        folder=folder,
        results=Results(results),
        scale=scale,
        compute=ComputeSettings(device=device, precision=precision, max_physical_batch_size=physical_batch),
        tell=lambda words: console.print(words, markup=False),
    )
    for run, outcome in sweep.run(experiment_named(name), seeds=seed or (), rows=row or ()).items():
        console.print(f"{run}: {outcome}", markup=False)
    where = "" if results == _RESULTS else f" --results {results}"
    console.print(f"results: {results / scale}; the table: dpal experiments table {name} --scale {scale}{where}")


@experiments.command("table")
def show_table(
    name: Annotated[
        str, typer.Argument(help="An experiment from dpal experiments list, or all for the whole page of results.")
    ],
    scale: _Scale = "full",
    results: _Results = _RESULTS,
    markdown: Annotated[Path | None, typer.Option(help="Write it to this file instead, as Markdown.")] = None,
    force: Force = False,
) -> None:
    """Show what was measured next to the paper's numbers; a cell without a result says which run is missing.

    Example: dpal experiments table headline
    """
    from dpal.experiments.catalogue import experiment_named
    from dpal.experiments.results import Results
    from dpal.experiments.results_page import page_of, section_of
    from dpal.experiments.scales import SCALES
    from dpal.experiments.tables import table_of

    require_free(markdown, force=force)
    if scale not in SCALES:
        raise InvalidArgument("scale", scale, f"one of {', '.join(SCALES)}")
    console = Console(highlight=False)
    if name == "all" or markdown is not None:
        files = Results(results)
        text = page_of(files, scale=scale) if name == "all" else section_of(experiment_named(name), files, scale=scale)
        if markdown is None:
            console.print(text, markup=False, soft_wrap=True)
        else:
            markdown.write_text(text, encoding="utf-8")
            console.print(f"written to {markdown}", markup=False)
        return
    experiment = experiment_named(name)
    made = table_of(experiment, Results(results), scale=scale)
    table = Table(title=f"{experiment.title}\n{SCALES[scale].words}")
    for heading in made.headings:
        table.add_column(heading, overflow="fold")
    for cells in made.rows:
        table.add_row(*cells)
    console.print(table)
