"""The campaign's report: one HTML file that opens anywhere, and the same as JSON."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from dpal.campaign.files import write_text
from dpal.errors import InvalidArgument, MissingPackage
from dpal.privacy.rounding import rounded_up
from dpal.reports.campaign_data import report_data
from dpal.reports.page import bullets, document, escaped, section, table
from dpal.reports.plain_words import exactly


def write_report(folder: Path | str, path: Path, *, internal: bool = True, baseline: Path | str | None = None) -> Path:
    """Write the report and its JSON, each whole or not at all. Without `internal`, it may be handed on.

    A baseline, another campaign such as one with random selection, is drawn beside this one's learning curve.
    """
    if path.suffix.lower() != ".html":
        raise InvalidArgument("the report's file", str(path), "named with .html")
    data = report_data(folder, internal=internal)
    if baseline is not None:
        other = report_data(baseline, internal=False)
        data["baseline"] = {name: other[name] for name in ("campaign", "metrics", "labels_by_phase", "plan")}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path.with_suffix(".json"), json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    write_text(path, as_html(data))
    return path


def as_html(data: dict[str, Any]) -> str:
    """The report as one self-contained page."""
    status, plan = data["status"], data["plan"]
    is_good = data["verification"]["holds"] and data["verification"]["is_private"] and not data["protects_little"]
    parts = [
        f"<h1>{escaped(data['campaign'])}</h1><p>{escaped(_stage(status))}</p>",
        f'<p class="promise{"" if is_good else " bad"}">{escaped(data["promise"])}</p>',
        "" if data["worst_case"] is None else f"<p>{escaped(data['worst_case'])}</p>",
        section("Privacy", _checks(data), _figure(data, "spending"), _phases(plan)),
        section("How good the model is", *_learning(data)),
        section("Records", _records(status)),
        section("What the promise means", bullets(data["assumptions"])),
        section(
            "Check it yourself",
            f"<pre>{escaped(data['how_to_verify'])}</pre>",
            f"<p>plan {escaped(data['plan_hash'][:16])}…, ledger {escaped(data['ledger_hash'][:16])}…</p>",
        ),
        section(
            "Configuration",
            f"<pre>{escaped(yaml.safe_dump(data['configuration'], sort_keys=False, allow_unicode=True))}</pre>",
        ),
        _internal(data),
        f"<footer>dpal {escaped(data['dpal_version'])}; last change {escaped(status['last_day'])}</footer>",
    ]
    return document(f"{data['campaign']}: dpal report", parts)


def _stage(status: dict[str, Any]) -> str:
    given_up = "".join(f" Phase {phase} was given up." for phase in status["phases_given_up"])
    if status["stage"] == "finished":
        return f"Finished.{given_up}"
    return f"{status['stage'].replace('-', ' ').capitalize()}. Next: {status['next_step']}.{given_up}"


def _checks(data: dict[str, Any]) -> str:
    found = data["verification"]
    rows = [[escaped(each["what"]), _verdict(each["holds"]), escaped(each["detail"])] for each in found["checks"]]
    spent = (
        f"<p>ε spent: <b>{rounded_up(found['epsilon_spent'], 4):.4f}</b> of {exactly(found['epsilon_budget'])} at δ = "
        f"{exactly(found['target_delta'])}.</p>"
    )
    return spent + table(["checked", "", "what was found"], rows)


def _verdict(holds: bool) -> str:
    return '<span class="yes">holds</span>' if holds else '<span class="no">FAILS</span>'


def _figure(data: dict[str, Any], kind: str) -> str:
    try:
        from dpal.reports import campaign_plots
    except ModuleNotFoundError as error:
        raise MissingPackage("Reports need matplotlib: pip install 'dpal[plots]'. Nothing was written.") from error
    if kind == "spending":
        figure, words = campaign_plots.spending_figure(data), "ε by phase and group, and training steps"
    else:
        runs = {data["campaign"]: data}
        if "baseline" in data:
            runs[f"{data['baseline']['campaign']} (baseline)"] = data["baseline"]
        figure = campaign_plots.learning_figure(runs, kind)
        words = f"{kind.replace('_', ' ')} by labels and by ε"
    return f'<figure role="img" aria-label="{escaped(words)}">{campaign_plots.as_svg(figure)}</figure>'


def _phases(plan: dict[str, Any]) -> str:
    rows = [
        [
            str(number),
            f"{each['steps']:,}",
            f"{each['noise_multiplier']:.4f}",
            f"{each['expected_batch_size']:,.1f}",
            ", ".join(f"{rate:.4f}" for rate in each["sampling_probabilities"]),
        ]
        for number, each in enumerate(plan["phases"], start=1)
    ]
    return table(["phase", "steps", "noise multiplier", "expected batch", "sampling rates, oldest group first"], rows)


def _learning(data: dict[str, Any]) -> Iterable[str]:
    if not data["metrics"]:
        yield "<p>No held-out set was given, or no phase is trained yet.</p>"
        return
    yield "<p>Measured on a held-out set that the configuration declares public.</p>"
    names = [name for name in data["metrics"][0] if name not in ("phase", "records")]
    if names:
        yield _figure(data, names[0])
    rows = [
        [
            str(each["phase"]),
            f"{data['labels_by_phase'][each['phase'] - 1]:,}",
            *(f"{each[name]:.2%}" for name in names),
        ]
        for each in data["metrics"]
    ]
    yield table(["phase", "labels asked for", *(name.replace("_", " ") for name in names)], rows)


def _records(status: dict[str, Any]) -> str:
    names = (("pool_size", "in the pool"), ("asked", "asked about"), ("retired", "retired"))
    return table(["", "records"], [[name, f"{status[key]:,}"] for key, name in names])


def _internal(data: dict[str, Any]) -> str:
    """What the promise does not cover, for the people who run the campaign."""
    if data["internal"] is None:
        return ""
    labels = [[name.replace("_", " "), f"{count:,}"] for name, count in data["internal"]["labels"].items()]
    times = [
        [str(each["phase"]), escaped(each["engine"]), f"{each['seconds']:,.1f}"]
        for each in data["internal"]["phases_trained"]
    ]
    warning = (
        "Internal: not covered by the promise, since it depends on private records. Leave this part out when you hand "
        "the report on (dpal report --public)."
    )
    return section(
        "For the people who run it",
        f'<p class="warning">{warning}</p>',
        table(["labels", "records"], labels),
        table(["phase", "engine", "seconds"], times) if times else "",
    )
