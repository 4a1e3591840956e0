"""What a soak was made of: faults by kind and outcome, and what was wrong."""

import json
import platform
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

# What soaks have found so far, and was mended.
FOUND = (
    "a full disk while dpal init makes the database ended in sqlite3's own error, with a traceback",
    "a database that another user may not open ended in a traceback",
    "an input/output error while campaign.head was read was called damage, with the advice to restore a backup",
    "a label source that raised an error ended dpal run with a traceback",
    "too little memory, by Python's error or torch's, ended in a traceback",
    "Ctrl-C while the program puts its commands together ended in a traceback",
    "Ctrl-C right after dpal serve printed its links ended in warnings about a coroutine",
    "a zeroed block of contents.db ended in a traceback, depending on where it lay",
    "a sealed key of which a part was lost, or with a flipped bit, was used as if it were whole",
    "a zeroed block of inbox.db ended in a traceback, and a changed bit of an answer in it was not noticed",
    "half a model, under a name that safetensors had given it, stayed in checkpoints for ever after a kill",
    "too little memory while engines are tried chose another engine in silence, so another model on the same charge",
    "the thread that reports progress printed a traceback for want of memory",
)


def read(results: Path) -> Iterator[dict[str, Any]]:
    """The stories of a file of results. A last line that was cut off is not one."""
    if not results.exists():
        return
    with results.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue


def summary(stories: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Everything in numbers."""
    known = list(stories)
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for story in known:
        for kind, outcome in story["faults"]:
            by_kind[kind][outcome] += 1
    faults = sum(count.total() for count in by_kind.values())
    broken = sum(story["violation"] is not None for story in known)
    return {
        "benchmark": "Random faults over whole campaigns",
        "claims": [
            {
                "claim": "releases without a charge, lost answers, unreadable campaigns and tracebacks, all together",
                "measured": broken,
                "target": "0",
                "holds": broken == 0,
            }
        ],
        "faults": faults,
        "stories": len(known),
        "seeds": [
            min((story["seed"] for story in known), default=0),
            max((story["seed"] for story in known), default=0),
        ],
        "campaigns_by_kind": dict(sorted(Counter(story["kind"] for story in known).items())),
        "faults_by_kind": {
            kind: dict(count.most_common())
            for kind, count in sorted(by_kind.items(), key=lambda item: -item[1].total())
        },
        "drawn_and_not_met": sum(story["missed"] for story in known),
        "cpu_seconds": round(sum(story["cpu"] for story in known)),
        "violations": [
            {"seed": story["seed"], "kind": story["kind"], "what": story["violation"].splitlines()[0]}
            for story in known
            if story["violation"]
        ],
        "bugs_found_and_mended": list(FOUND),
        "device": {"cpu": platform.machine(), "system": platform.system(), "python": platform.python_version()},
        "versions": {
            "dpal": version("dpal"),
            "torch": version("torch"),
            "sqlite": sqlite3.sqlite_version,
        },
    }


def table(made: Mapping[str, Any]) -> str:
    """The summary for people."""
    lines = [f"{'fault':48} {'times':>6}  how the command ended"]
    for kind, outcomes in made["faults_by_kind"].items():
        ended = ", ".join(f"{outcome} {count:,}" for outcome, count in outcomes.items())
        lines.append(f"{kind:48} {sum(outcomes.values()):6,}  {ended}")
    lines.append(
        f"{made['faults']:,} faults in {made['stories']:,} campaigns, {made['cpu_seconds']:,} s of processor time, "
        f"{len(made['violations'])} violations"
    )
    lines += [f"  seed {each['seed']} ({each['kind']}): {each['what']}" for each in made["violations"]]
    return "\n".join(lines)


def page(made: Mapping[str, Any]) -> str:
    """The table of docs/faults.md."""
    lines = ["| fault | times | how the command ended |", "| --- | ---: | --- |"]
    for kind, outcomes in made["faults_by_kind"].items():
        ended = ", ".join(f"{outcome} {count:,}" for outcome, count in outcomes.items())
        lines.append(f"| {kind} | {sum(outcomes.values()):,} | {ended} |")
    return "\n".join(lines)
