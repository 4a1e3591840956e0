"""The report of a campaign: one HTML file that opens anywhere, and the same facts as JSON."""

import json
import shlex
from pathlib import Path
from typing import Any

import yaml

from dpal.campaign.files import write_text
from dpal.errors import InvalidArgument
from dpal.privacy.rounding import rounded_up
from dpal.reports.campaign_data import report_data
from dpal.reports.campaign_plots import held_out_figure, learning_figure, spending_figure
from dpal.reports.figures import as_svg
from dpal.reports.held_out_data import difference_in_words
from dpal.reports.html_pages import grouped, inline_svg, percent, render
from dpal.reports.plain_words import labels_axis, spaced

# What is needed of a baseline to draw its curve.
_CURVE = ("campaign", "metrics", "labels_by_phase", "labels_are_planned", "plan")

_NOT_SCORES = ("phase", "records")


def write_report(folder: Path | str, path: Path, *, internal: bool = True, baseline: Path | str | None = None) -> Path:
    """Write the report and its JSON, each whole or not at all. Without `internal`, it may be handed on.

    A baseline is another campaign, such as one with random selection; its learning curve is drawn next to this one's.
    """
    if path.suffix.lower() != ".html":
        raise InvalidArgument("the report's file", str(path), "named with .html")
    data = report_data(folder, internal=internal)
    if baseline is not None:
        other = report_data(baseline, internal=False)
        data["baseline"] = {name: other[name] for name in _CURVE}
    page = as_html(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path.with_suffix(".json"), json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    write_text(path, page)
    return path


def as_html(data: dict[str, Any]) -> str:
    """The report as one self-contained page."""
    verification = data["verification"]
    # An earlier phase may have been measured by an older dpal, with fewer scores.
    metrics = list(dict.fromkeys(name for measured in data["metrics"] for name in measured if name not in _NOT_SCORES))
    held_out = data["held_out"]
    return render(
        "campaign.html",
        data=data,
        stage=_stage(data["status"]),
        is_good=verification["holds"] and verification["is_private"] and not data["protects_little"],
        epsilon_spent=f"{rounded_up(verification['epsilon_spent'], 4):.4f}",
        spending=inline_svg(as_svg(spending_figure(data))),
        phases=_phases(data["plan"]),
        metrics=metrics,
        labels_heading=labels_axis([data["labels_are_planned"]]),
        learning=_learning(data, metrics[0]) if metrics else None,
        measured=[
            (
                measurement["phase"],
                grouped(data["labels_by_phase"][measurement["phase"] - 1]),
                *(percent(measurement[name]) if name in measurement else "" for name in metrics),
            )
            for measurement in data["metrics"]
        ],
        by_class=[] if held_out is None else _by_class(held_out),
        held_out_figure=inline_svg(as_svg(held_out_figure(held_out))) if held_out and held_out["by_class"] else None,
        difference=difference_in_words(data),
        how_to_compare=_how_to_compare(data),
        configuration=yaml.safe_dump(data["configuration"], sort_keys=False, allow_unicode=True),
        **_internal(data["internal"]),
    )


def _stage(status: dict[str, Any]) -> str:
    given_up = "".join(f" Phase {phase} was given up." for phase in status["phases_given_up"])
    if status["stage"] == "finished":
        return f"Finished.{given_up}"
    return f"{status['stage'].replace('-', ' ').capitalize()}. Next: {status['next_step']}.{given_up}"


def _phases(plan: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            number,
            grouped(phase["steps"]),
            f"{phase['noise_multiplier']:.4f}",
            f"{phase['expected_batch_size']:,.1f}",
            ", ".join(f"{probability:.4f}" for probability in phase["sampling_probabilities"]),
        )
        for number, phase in enumerate(plan["phases"], start=1)
    ]


def _learning(data: dict[str, Any], metric: str) -> str:
    curves = {data["campaign"]: data}
    if "baseline" in data:
        curves[f"{data['baseline']['campaign']} (baseline)"] = data["baseline"]
    return inline_svg(as_svg(learning_figure(curves, metric)))


def _how_to_compare(data: dict[str, Any]) -> str | None:
    """How to make and draw a baseline of random labels. Only for simulations: another private campaign would cost ε."""
    complete = all(data["configuration"].get(section) for section in ("data", "plan", "model"))
    if data["verification"]["is_private"] or not complete:
        return None
    name = shlex.quote(data["campaign"])
    random = shlex.quote(f"{data['campaign']}-random")
    return (
        f"dpal init {random} --config {name}/campaign.yaml --set plan.selection=random\n"
        f"dpal run {random}\n"
        f"dpal report {name} --baseline {random}"
    )


def _by_class(held_out: dict[str, Any]) -> list[tuple[str, ...]]:
    """By class: its name, its held-out records, and how many of them are right, or its AUC."""
    if held_out["several_labels"]:
        return [
            (one["class"], grouped(one["records"]), "" if one["auc"] is None else f"{one['auc']:.3f}")
            for one in held_out["by_class"]
        ]
    return [
        (
            one["class"],
            grouped(one["records"]),
            grouped(one["right"]),
            "" if one["recall"] is None else percent(one["recall"]),
        )
        for one in held_out["by_class"]
    ]


def _internal(internal: dict[str, Any] | None) -> dict[str, list[tuple[object, ...]]]:
    """The rows that the promise does not cover, for the people who run the campaign."""
    if internal is None:
        return {}
    return {
        "labels": [(spaced(name), grouped(count)) for name, count in internal["labels"].items()],
        "asked_by_phase": [(phase, grouped(count)) for phase, count in enumerate(internal["labels_by_phase"], start=1)],
        "times": [
            (trained["phase"], trained["engine"], f"{trained['seconds']:,.1f}")
            for trained in internal["phases_trained"]
        ],
    }
