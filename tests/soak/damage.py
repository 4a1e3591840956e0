"""Files that are damaged while nothing runs: torn, with a flipped bit, missing or of yesterday.

Done to a copy. A damaged campaign is refused with a sentence, or the damage is one that changes nothing; the copy's
original goes on.
"""

import json
import os
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from campaign_kinds import Template
from commands import Ended, done
from observer import Observer, Violation, read_facts, released, require

import dpal

WAYS = ("torn file", "flipped bit", "zeroed block", "missing file", "older database")
ACCEPTED, REFUSED = (0, 3, 6), (2, 5)
_BLOCK = 512


@dataclass(frozen=True)
class Damage:
    """What was done to which file, and how the command that met it ended."""

    kind: str
    detail: str
    ended: Ended


def damaged(chance: random.Random, observer: Observer, template: Template, older: bytes | None) -> Damage | None:
    """Damage a copy of the campaign and use it. None if there was nothing to damage."""
    copy = observer.folder.with_name("damaged")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(observer.folder, copy)
    try:
        way = chance.choice(WAYS)
        detail = _harm(chance, copy, way, older)
        if detail is None:
            return None
        run = ["run", copy, "--go-on"]
        words = chance.choice([["status", copy], ["verify", copy], run, run, ["labels", "history", copy]])
        ended = done(words)
        _check(ended, copy, observer, template, f"{way} {detail}", detail.partition(" at ")[0])
        return Damage(way, detail, ended)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _harm(chance: random.Random, folder: Path, way: str, older: bytes | None) -> str | None:
    if way == "older database":
        path = folder / "campaign.db"
        if older is None or older == path.read_bytes() or list(folder.glob("*-journal")):
            return None
        path.write_bytes(older)
        noted = json.loads((folder / "campaign.head").read_text())["number"]
        # A process that died right after a commit has not noted it, nor told anybody: without it, nothing is lost.
        return path.name if len(read_facts(folder).rows) < noted else None
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    if way == "missing file":
        # Answers that waited in an inbox that somebody removes are lost, and nobody can tell: see docs/faults.md.
        files = [path for path in files if path.name != "inbox.db"]
    # More often what matters.
    path = chance.choices(files, [_weight(path.name) for path in files])[0]
    content, name = bytearray(path.read_bytes()), path.relative_to(folder).as_posix()
    place = chance.randrange(len(content))
    match way:
        case "torn file":
            path.write_bytes(content[:place])
        case "flipped bit":
            content[place] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
        case "zeroed block":
            place -= place % _BLOCK
            if not any(content[place : place + _BLOCK]):
                return None
            content[place : place + _BLOCK] = bytes(len(content[place : place + _BLOCK]))
            path.write_bytes(content)
        case _:
            path.unlink()
    return f"{name} at {place}"


def _weight(name: str) -> int:
    return 4 if name.endswith((".key", ".snapshot", ".db", ".safetensors", ".draft")) else 1


def _check(ended: Ended, copy: Path, observer: Observer, template: Template, what: str, harmed: str) -> None:
    require_words(ended, (*ACCEPTED, *REFUSED), what)
    if ended.code in REFUSED:
        return
    # It was accepted, so nothing may be different from the original's.
    try:
        facts = read_facts(copy)
    except Violation as error:
        raise Violation(f"{what}: '{ended.words[0]}' accepted it, but {error}") from error
    before = observer.facts.rows
    require(facts.rows[: len(before)] == before, f"{what}: '{ended.words[0]}' accepted other facts")
    recorded = {body["file"] for _, body in facts.of("trained")} | {"checkpoints/initial.safetensors"}
    require(ended.words[0] != "verify" or harmed not in recorded, f"{what}: 'verify' accepted it")
    if ended.words[0] == "run" and template.kind.seeded and not observer.is_changed:
        # An earlier phase's model, which nothing reads any more, may stay as damaged as it is: verify says so.
        chosen, models = released(copy, without=harmed)
        require(chosen == template.released[0][: len(chosen)], f"{what}: 'run' accepted it, and selects others")
        for model, expected in zip(models, template.released[1], strict=False):
            require(model is None or model == expected, f"{what}: 'run' accepted it, and trains another model")
    if ended.words[0] == "run":
        for name, answer in observer.acknowledged.items():
            known = facts.answers.get(name)
            require(known == answer, f"{what}: the answer about {name} was {answer} and is {known} after 'run'")


# Where Ctrl-C comes while a library's C code or destructor runs, Python swallows it, and says so.
_SWALLOWED = re.compile(
    r"^Exception ignored in: .*\nTraceback .*\n(?:(?:  .*)?\n)+?KeyboardInterrupt: ?\n", re.MULTILINE
)
_OURS = f"{Path(dpal.__file__).parent}{os.sep}"


def _unless_ours(found: re.Match[str]) -> str:
    return found.group() if _OURS in found.group() else ""


def require_words(ended: Ended, codes: tuple[int, ...], what: str, *, without_memory: bool = False) -> None:
    """A command ends with an exit code that is documented, and says what happened in words and not in a traceback."""
    command = " ".join(word for word in ended.words if "/" not in word)
    require(without_memory or not ended.hung, f"{what}: '{command}' hung")
    if without_memory and ("not enough memory" in ended.output or ended.code < 0):
        # It said so. Where there is not even memory for ending, Python's own words may follow.
        return
    if without_memory and "\nSystemError: " in ended.output:
        # A mistake of Python's own, which forgot that there was no memory.
        return
    said = _SWALLOWED.sub(_unless_ours, ended.output)
    require("Traceback" not in said, f"{what}: '{command}' printed a traceback:\n{ended.output[-3000:]}")
    require(ended.code in codes, f"{what}: '{command}' ended with {ended.code}:\n{ended.output[-1500:]}")
    if ended.code in (1, 2, 4):
        require(
            re.search("error: |─ Error ─", ended.output) is not None,
            f"{what}: '{command}' ended with {ended.code} and says not why:\n{ended.output}",
        )
