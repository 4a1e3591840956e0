"""Answers of a person become a configuration, and a kept configuration becomes answers to offer again."""

from collections.abc import Mapping
from typing import Any

from dpal.campaign.default_model import ENCODERS, encoder_model
from dpal.cli.questions import NO, YES, Answers
from dpal.data.named.registry import DATASETS
from dpal.selection.selection import INSIDE

# The option of each source that says where the records are.
PLACES = {"table": "file", "image-folder": "folder", "numpy": "file", "hugging-face": "name"}
TEXT_MODEL = "text-classifier"
GREY, COLOUR = "grey", "colour"


def config_of(answers: Answers) -> dict[str, Any]:
    """The configuration, as far as there are answers."""
    document: dict[str, Any] = {}
    if "source" in answers:
        document["data"] = _data(answers)
    if _held_out_is_complete(answers):
        document["evaluation"] = _evaluation(answers)
    plan = {
        "target_epsilon": answers.get("epsilon"),
        "labelling_budget": answers.get("labels"),
        "initial_size": _initial_size(answers),
        "phases": answers.get("phases"),
        "selections": answers.get("selections"),
    }
    if stated := {name: value for name, value in plan.items() if value is not None}:
        document["plan"] = stated
    if "model" in answers:
        document |= _model_sections(answers)
    if "oracle" in answers:
        document["oracle"] = answers["oracle"]
    return document


def _initial_size(answers: Answers) -> int | None:
    """Half of the labels. With selections inside, the plan has a measured default of its own."""
    if answers.get("selections", INSIDE) == INSIDE or "labels" not in answers:
        return None
    return answers["labels"] if answers.get("phases") == 1 else max(1, answers["labels"] // 2)


def _data(answers: Answers) -> dict[str, Any]:
    source = answers["source"]
    if source in DATASETS:
        return {"source": source}
    options = {
        PLACES[source]: answers.get("place"),
        "split": answers.get("split"),
        "id_column": answers.get("id_column"),
        **_common(answers),
    }
    data: dict[str, Any] = {"source": source, "options": _stated(options)}
    if "ids_are_free" in answers:
        data["ids_are_free_of_content"] = answers["ids_are_free"]
    if (unit := unit_of(answers)) is not None:
        data["unit"] = unit
    return data


def unit_of(answers: Answers) -> dict[str, Any] | None:
    """The section data.unit, once it is known how units are found."""
    if not answers.get("several_records") or "unit_is" not in answers:
        return None
    options = {
        "name": answers["unit_word"],
        answers["unit_from"]: answers["unit_is"],
        "records": answers.get("unit_records"),
        "one_label": answers.get("one_label"),
    }
    return _stated(options)


def _common(answers: Answers) -> dict[str, Any]:
    """What the held-out set has in common with the pool."""
    column = {"texts": "text", "images": "image"}[answers.get("kind", "images")]
    return {
        column: answers.get("column"),
        "classes": answers.get("classes"),
        "size": answers.get("size"),
        "channels": answers.get("channels"),
    }


def _held_out_is_complete(answers: Answers) -> bool:
    is_public = bool(answers.get("held_out") and answers.get("held_out_is_public"))
    return is_public and (answers["source"] == "image-folder" or "held_out_labels" in answers)


def _evaluation(answers: Answers) -> dict[str, Any]:
    source = answers["source"]
    options = _common(answers)
    if source == "hugging-face":
        options |= {"name": answers["place"], "split": answers["held_out"], "label": answers["held_out_labels"]}
    else:
        options[PLACES[source]] = answers["held_out"]
        match source:
            case "image-folder":
                options["labels_from_folders"] = True
            case "numpy":
                options["labels"] = answers["held_out_labels"]
            case _:
                options["label"] = answers["held_out_labels"]
    return {"source": source, "options": _stated(options), "is_public": True}


def _model_sections(answers: Answers) -> dict[str, Any]:
    name = answers["model"]
    if name in ENCODERS:
        return {"model": encoder_model(name).model_dump()}
    if name == TEXT_MODEL and "text_model" in answers:
        options = {"name": answers["text_model"]}
        return {"text": {"tokenizer": answers["text_model"]}, "model": {"name": name, "options": options}}
    return {"model": {"name": name, "options": {}}}


def _stated(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def answers_in(document: Mapping[str, Any]) -> dict[str, str]:
    """What a person would type for a configuration such as `config_of` makes: the inverse, as far as it has answers."""
    data, plan, model = (_section(document, name) for name in ("data", "plan", "model"))
    options, held_out = _section(data, "options"), _section(_section(document, "evaluation"), "options")
    source = data.get("source")
    place = PLACES.get(str(source), "")
    column = options.get("text", options.get("image"))
    unit = _section(data, "unit")
    unit_from = next((way for way in ("column", "file", "pattern") if unit.get(way) is not None), None)
    typed: dict[str, Any] = {
        "source": source,
        "place": options.get(place),
        "split": options.get("split"),
        "kind": "texts" if "text" in options else "images" if "image" in options else None,
        "column": ", ".join(column) if isinstance(column, list) else column,
        "id_column": options.get("id_column"),
        "ids_are_free": data.get("ids_are_free_of_content"),
        "held_out": held_out.get("split", held_out.get(place)),
        "held_out_is_public": True if held_out else None,
        "held_out_labels": held_out.get("label", held_out.get("labels")),
        "classes": ", ".join(map(str, options["classes"])) if isinstance(options.get("classes"), list) else None,
        "several_records": True if unit else None,
        "unit_word": unit.get("name"),
        "unit_from": unit_from,
        "unit_is": unit.get(str(unit_from)),
        "unit_records": unit.get("records"),
        "one_label": unit.get("one_label"),
        "model": _section(model, "options").get("encoder", model.get("name")),
        "text_model": _section(model, "options").get("name"),
        "size": options.get("size"),
        "channels": {"1": GREY, "3": COLOUR}.get(str(options.get("channels"))),
        "epsilon": plan.get("target_epsilon"),
        "selections": plan.get("selections"),
        "labels": plan.get("labelling_budget"),
        "phases": plan.get("phases"),
        "oracle": document.get("oracle"),
    }
    return {name: _shown(value) for name, value in typed.items() if value is not None}


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = document.get(name)
    return section if isinstance(section, Mapping) else {}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return YES if value else NO
    return f"{value:g}" if isinstance(value, float) else str(value)
