"""The few questions that matter, for `dpal init` on a terminal."""

from typing import Any

import typer

from dpal.data.datasets import DATASETS
from dpal.data.opening import SOURCES


def ask(epsilon: float | None) -> dict[str, Any]:
    """A configuration from a person's answers."""
    typer.echo("Where are the records?")
    typer.echo(f"  your own: {', '.join(SOURCES)}    for a try: {', '.join(DATASETS)}")
    source = _one_of("source", [*SOURCES, *DATASETS], "image-folder")
    options: dict[str, Any] = {}
    text: dict[str, Any] | None = None
    model: dict[str, Any] = {"name": "resnet9", "options": {}}
    if source in SOURCES:
        options[_PLACES[source]] = typer.prompt(_PLACE_QUESTIONS[source])
        names = typer.prompt("the classes, with commas between")
        options["classes"] = [name.strip() for name in names.split(",")]
        is_text = source != "image-folder" and typer.confirm("are the records texts?", default=False)
        if source in ("table", "hugging-face"):
            options["text" if is_text else "image"] = typer.prompt(
                "the column with the " + ("texts" if is_text else "images")
            )
            column = typer.prompt("the column with ids (empty: row numbers)", default="", show_default=False)
            if column:
                options["id_column"] = column
        if source == "hugging-face":
            options["split"] = typer.prompt("the split", default="train")
        if is_text:
            encoder = typer.prompt("the text model, a folder or a name on the hub", default="bert-base-uncased")
            text, model = {"tokenizer": encoder}, {"name": "text-classifier", "options": {"name": encoder}}
        elif source == "image-folder" or "image" in options:
            options["size"] = typer.prompt("the side of the images for the model, in pixels", type=int, default=64)
    budget = epsilon if epsilon is not None else typer.prompt("ε of the promise", type=float, default=8.0)
    labels = typer.prompt("labels that people can give in all", type=int, default=200)
    oracle = _one_of(
        "who labels: people through files, or the data's own labels (simulated)", ["files", "simulated"], "files"
    )
    return {
        "data": {"source": source, "options": options},
        "text": text,
        "plan": {"target_epsilon": budget, "labelling_budget": labels, "initial_size": max(1, labels // 2)},
        "model": model,
        "oracle": oracle,
    }


_PLACES = {"table": "file", "image-folder": "folder", "numpy": "file", "hugging-face": "name"}
_PLACE_QUESTIONS = {
    "table": "the table (.csv, .tsv, .jsonl or .parquet)",
    "image-folder": "the folder of images",
    "numpy": "the .npy file",
    "hugging-face": "the dataset's name on the hub, or its folder",
}


def _one_of(question: str, choices: list[str], default: str) -> str:
    while True:
        answer = str(typer.prompt(question, default=default)).strip()
        if answer in choices:
            return answer
        typer.echo(f"{answer!r} is none of {', '.join(choices)}")
