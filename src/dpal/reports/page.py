"""What every HTML page of ours is made of: one look, nothing from outside."""

import html
from collections.abc import Sequence

STYLE = """
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


def document(title: str, parts: Sequence[str]) -> str:
    """A whole page that opens offline, on phones and on paper, in light and in dark."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{STYLE}</style></head><body>" + "\n".join(parts) + "</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A part of the page under a heading."""
    return f"<section><h2>{escaped(title)}</h2>{''.join(parts)}</section>"


def bullets(items: Sequence[str]) -> str:
    """A list of plain texts."""
    return "<ul>" + "".join(f"<li>{escaped(item)}</li>" for item in items) + "</ul>"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already, or plain numbers and names of ours."""
    head = "".join(f"<th>{escaped(each)}</th>" for each in headings)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def escaped(value: object) -> str:
    """Plain text for HTML."""
    return html.escape(str(value))
