"""The campaign's report: one HTML file that opens anywhere, and the same as JSON."""

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from dpal.campaign.files import write_text
from dpal.errors import InvalidArgument, MissingPackage
from dpal.reports.campaign_data import report_data

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --soft: #f3f4f6; --line: #d4d7dd; --good: #00684a;
  --bad: #b00020; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --soft: #22252b; --line: #3a3f48;
  --good: #5bd6a8; --bad: #ff7b88; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 56rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
.promise { border-left: .4rem solid var(--good); background: var(--soft); padding: .8rem 1rem; font-size: 1.05rem; }
.promise.bad, .warning { border-left: .4rem solid var(--bad); color: var(--bad); background: var(--soft);
  padding: .8rem 1rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; }
.wide { overflow-x: auto; }
figure { margin: .6rem 0; background: #ffffff; border: 1px solid var(--line); padding: .4rem; }
figure svg { width: 100%; height: auto; display: block; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font-size: .85rem; white-space: pre-wrap; }
.yes { color: var(--good); font-weight: 600; } .no { color: var(--bad); font-weight: 600; }
footer { margin-top: 2.5rem; font-size: .85rem; opacity: .8; }
@media print { body { max-width: none; padding: 0; } h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


def write_report(folder: Path | str, path: Path, *, internal: bool = True) -> Path:
    """Write the report and its JSON, each whole or not at all. Without `internal`, it may be handed on."""
    if path.suffix.lower() != ".html":
        raise InvalidArgument("the report's file", str(path), "named with .html")
    data = report_data(folder, internal=internal)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path.with_suffix(".json"), json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    write_text(path, as_html(data))
    return path


def as_html(data: dict[str, Any]) -> str:
    """The report as one self-contained page."""
    status, plan = data["status"], data["plan"]
    is_good = data["verification"]["holds"] and data["verification"]["is_private"]
    parts = [
        f"<h1>{_text(data['campaign'])}</h1><p>{_text(_stage(status))}</p>",
        f'<p class="promise{"" if is_good else " bad"}">{_text(data["promise"])}</p>',
        _section("Privacy", _checks(data), _figure(data, "spending"), _phases(plan)),
        _section("How good the model is", *_learning(data)),
        _section("Records", _records(status)),
        _section("What the promise means", _list(data["assumptions"])),
        _section(
            "Check it yourself",
            f"<pre>{_text(data['how_to_verify'])}</pre>",
            f"<p>plan {_text(data['plan_hash'][:16])}…, ledger {_text(data['ledger_hash'][:16])}…</p>",
        ),
        _section(
            "Configuration",
            f"<pre>{_text(yaml.safe_dump(data['configuration'], sort_keys=False, allow_unicode=True))}</pre>",
        ),
        _internal(data),
        f"<footer>dpal {_text(data['dpal_version'])}; last change {_text(status['last_change'])}</footer>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(data['campaign'])}: dpal report</title><style>{_STYLE}</style></head><body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def _stage(status: dict[str, Any]) -> str:
    return f"{status['stage'].replace('-', ' ').capitalize()}. Next: {status['next_step']}."


def _checks(data: dict[str, Any]) -> str:
    found = data["verification"]
    rows = [[_text(each["what"]), _verdict(each["holds"]), _text(each["detail"])] for each in found["checks"]]
    spent = (
        f"<p>ε spent: <b>{found['epsilon_spent']:.4f}</b> of {found['epsilon_budget']:g} at δ = "
        f"{found['target_delta']:g}.</p>"
    )
    return spent + _table(["checked", "", "what was found"], rows)


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
        figure = campaign_plots.learning_figure({data["campaign"]: data}, kind)
        words = f"{kind.replace('_', ' ')} by labels and by ε"
    return f'<figure role="img" aria-label="{_text(words)}">{campaign_plots.as_svg(figure)}</figure>'


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
    return _table(["phase", "steps", "noise multiplier", "expected batch", "sampling rates, oldest group first"], rows)


def _learning(data: dict[str, Any]) -> Iterable[str]:
    if not data["metrics"]:
        yield "<p>No held-out set was given, or no phase is trained yet.</p>"
        return
    yield "<p>Measured on a held-out set that the configuration declares public.</p>"
    names = [name for name in data["metrics"][0] if name not in ("phase", "records")]
    if names:
        yield _figure(data, names[0])
    rows = [
        [str(each["phase"]), f"{labels:,}", *(f"{each[name]:.2%}" for name in names)]
        for each, labels in zip(data["metrics"], data["labels_by_phase"], strict=False)
    ]
    yield _table(["phase", "labels asked for", *(name.replace("_", " ") for name in names)], rows)


def _records(status: dict[str, Any]) -> str:
    names = (("pool_size", "in the pool"), ("asked", "asked about"), ("retired", "retired"))
    return _table(["", "records"], [[name, f"{status[key]:,}"] for key, name in names])


def _internal(data: dict[str, Any]) -> str:
    """What the promise does not cover, for the people who run the campaign."""
    if data["internal"] is None:
        return ""
    labels = [[name.replace("_", " "), f"{count:,}"] for name, count in data["internal"]["labels"].items()]
    times = [
        [str(each["phase"]), _text(each["engine"]), f"{each['seconds']:,.1f}"]
        for each in data["internal"]["phases_trained"]
    ]
    warning = (
        "Internal: not covered by the promise, since it depends on private records. Leave this part out when you hand "
        "the report on (dpal report --public)."
    )
    return _section(
        "For the people who run it",
        f'<p class="warning">{warning}</p>',
        _table(["labels", "records"], labels),
        _table(["phase", "engine", "seconds"], times) if times else "",
    )


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{_text(title)}</h2>{''.join(parts)}</section>"


def _list(items: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already, or plain numbers and names of ours."""
    head = "".join(f"<th>{_text(each)}</th>" for each in headings)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _text(value: object) -> str:
    return html.escape(str(value))
