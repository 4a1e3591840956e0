"""The questions that `dpal init` asks on a terminal. An answer that cannot be right is asked for again at once."""

from pathlib import Path
from typing import Any

import typer

from dpal.data.named.registry import DATASETS
from dpal.data.sources import SOURCES
from dpal.data.tables import FORMATS
from dpal.selection.selection import INSIDE, PROMISES


def ask(epsilon: float | None, selections: str | None = None) -> dict[str, Any]:
    """A configuration from a person's answers. What is given is not asked."""
    typer.echo("Where are the records?")
    typer.echo(f"  your own: {', '.join(SOURCES)}    to try it out: {', '.join(DATASETS)}")
    source = _one_of("source", [*SOURCES, *DATASETS], "image-folder")
    sections = _own(source) if source in SOURCES else {"data": {"source": source}, **_RESNET9}
    budget = epsilon if epsilon is not None else typer.prompt("ε of the promise", type=float, default=8.0)
    labels = typer.prompt("labels that people can give in total", type=int, default=200)
    promise = _promise() if selections is None else selections
    oracle = "files"
    if source in DATASETS:
        who = "who labels: people through files, or the dataset's own labels (simulated)"
        oracle = _one_of(who, ["files", "simulated"], "files")
    return sections | {
        "plan": {
            "target_epsilon": budget,
            "labelling_budget": labels,
            "initial_size": max(1, labels // 2),
            "selections": promise,
        },
        "oracle": oracle,
    }


_RESNET9: dict[str, Any] = {"model": {"name": "resnet9", "options": {}}}


def _own(source: str) -> dict[str, Any]:
    """The sections on a person's own records: data, evaluation, model and, for texts, the tokenizer."""
    options: dict[str, Any] = {_PLACES[source]: _place(source, _PLACE_QUESTIONS[source])}
    options["classes"] = _classes()
    # What the held-out set has in common with the pool.
    columns: dict[str, Any] = {}
    sections: dict[str, Any] = {**_RESNET9}
    is_text = source in ("table", "hugging-face") and typer.confirm("are the records texts?", default=False)
    if source in ("table", "hugging-face"):
        kind = "text" if is_text else "image"
        columns[kind] = typer.prompt(f"the column with the {kind}s")
        if column := _optional("the column with ids"):
            options["id_column"] = column
    if source == "hugging-face":
        options["split"] = typer.prompt("the split", default="train")
    if is_text:
        encoder = _place("hugging-face", "the text model, a folder or a name on the hub", default="bert-base-uncased")
        sections = {"text": {"tokenizer": encoder}, "model": {"name": "text-classifier", "options": {"name": encoder}}}
    elif source != "numpy":
        columns["size"] = _size()
        columns["channels"] = {"grey": 1, "colour": 3}[_one_of("grey or colour", ["grey", "colour"], "colour")]
    data: dict[str, Any] = {"source": source, "options": options | columns}
    if source == "image-folder" or "id_column" in options:
        data["ids_are_free_of_content"] = _ids_are_free(source)
    held_out = _held_out(source, columns | {"classes": options["classes"]}, options)
    return sections | {"data": data} | ({"evaluation": held_out} if held_out else {})


def _promise() -> str:
    typer.echo("Who may learn which records were labelled?")
    typer.echo("  inside: only you and the people who label. The list and its length must never leave you; choices are")
    typer.echo(
        "    sharp. Someone with a copy of a record who knows that it is in the pool can tell if it was labelled."
    )
    typer.echo("  released: anyone. The list is covered by the promise too, so choices are noisier.")
    return _one_of("selections", list(PROMISES), INSIDE)


def _ids_are_free(source: str) -> bool:
    what = "paths inside the folder" if source == "image-folder" else "ids"
    typer.echo(f"People who label see names of records. Yours are {what}. A name such as ill/03.png or SMITH_1950")
    typer.echo("says something about the record. If any of yours does, answer no: opaque names are used instead.")
    return typer.confirm(f"are the {what} free of content?", default=False)


def _held_out(source: str, common: dict[str, Any], pool: dict[str, Any]) -> dict[str, Any] | None:
    """A public set to measure the models on, or none."""
    typer.echo("Public labelled records outside the pool can measure each model; reports show the results.")
    options = dict(common)
    if source == "hugging-face":
        split = _optional("the split that is held out")
        if not split:
            return None
        options |= {"name": pool["name"], "split": split}
    else:
        place = _place(source, f"held out: {_PLACE_QUESTIONS[source]}", may_be_empty=True)
        if not place:
            return None
        options[_PLACES[source]] = place
    match source:
        case "image-folder":
            typer.echo("Its images must be in folders named after the classes.")
            options["labels_from_folders"] = True
        case "numpy":
            options["labels"] = _place(source, "the .npy file with its labels")
        case _:
            options["label"] = typer.prompt("the column with the labels")
    if not typer.confirm("are these records public?", default=False):
        typer.echo("Then they are left out: results on private records would reveal something about them.")
        return None
    return {"source": source, "options": options, "is_public": True}


_PLACES = {"table": "file", "image-folder": "folder", "numpy": "file", "hugging-face": "name"}
_PLACE_QUESTIONS = {
    "table": f"the table ({', '.join(FORMATS)})",
    "image-folder": "the folder of images",
    "numpy": "the .npy file",
    "hugging-face": "the dataset's name on the hub, or its folder",
}


def _place(source: str, question: str, *, may_be_empty: bool = False, default: str | None = None) -> str:
    """A folder or a file that exists, with ~ expanded; or a name on the hub."""
    while True:
        answer = _optional(question) if may_be_empty else str(typer.prompt(question, default=default)).strip()
        if may_be_empty and not answer:
            return ""
        path = Path(answer).expanduser()
        if source == "image-folder":
            wrong = None if path.is_dir() else f"There is no folder {path}."
        elif source == "hugging-face":
            is_path = answer.startswith(("~", ".", "/"))
            wrong = f"There is no folder {path}." if is_path and not path.is_dir() else None
        else:
            endings = FORMATS if source == "table" else (".npy",)
            wrong = None if path.is_file() else f"There is no file {path}."
            if wrong is None and path.suffix.lower() not in endings:
                wrong = f"{path} does not end in {' or '.join(endings)}."
        if wrong is None:
            # A name on the hub is not a path. Paths are made absolute, so that they work from any folder.
            return str(path.resolve()) if path.exists() else answer
        typer.echo(wrong)


def _classes() -> list[str]:
    while True:
        names = [name.strip() for name in str(typer.prompt("the classes, separated by commas")).split(",")]
        if all(names) and len(set(names)) == len(names) > 1:
            return names
        typer.echo("Give at least two different names, such as: healthy, ill")


def _size() -> int:
    while True:
        size = int(typer.prompt("the side of the images for the model, in pixels", type=int, default=64))
        if size >= 1:
            return size
        typer.echo("It must be at least 1.")


def _optional(question: str) -> str:
    return str(typer.prompt(f"{question} (empty: none)", default="", show_default=False)).strip()


def _one_of(question: str, choices: list[str], default: str) -> str:
    while True:
        answer = str(typer.prompt(question, default=default)).strip()
        if answer in choices:
            return answer
        typer.echo(f"{answer!r} is not one of {', '.join(choices)}")
