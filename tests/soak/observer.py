"""What must hold after every fault, found out without the process that died and, for the facts, without dpal's code.

It looks at a copy of the folder, so that looking changes nothing: what a process left behind meets the next one.
"""

import hashlib
import json
import shutil
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from dpal.campaign.campaign import Campaign
from dpal.errors import DpalError

_TOLERANCE = 1e-9
CHARGES = {"selected": "charged-selection", "produced": "charged-training", "trained": "charged-training"}
CHARGES |= {"mean-released": "charged-mean", "given-up": "charged-training", "scored": "charged-selection"}


class Violation(Exception):
    """Something that must hold does not."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Violation(what)


@dataclass(frozen=True)
class Facts:
    """The facts of a campaign as the rows of its database say, in plain Python."""

    rows: tuple[tuple[int, str, dict[str, Any], str], ...]

    def of(self, *kinds: str) -> list[tuple[int, dict[str, Any]]]:
        return [(number, body) for number, kind, body, _ in self.rows if kind in kinds]

    @property
    def is_finished(self) -> bool:
        return bool(self.of("finished"))

    @property
    def answers(self) -> dict[str, Any]:
        """The answers that count."""
        found: dict[str, Any] = {}
        for _, body in self.of("answered"):
            found |= body["answers"]
        return {name: answer for name, answer in found.items() if answer is not None}

    @property
    def withdrawn(self) -> set[str]:
        return {name for _, body in self.of("withdrawn") for name in body["ids"]}

    @property
    def missing(self) -> list[str]:
        """The records that were asked about and have no answer."""
        asked = [name for _, body in self.of("selected") for name in body["to_label"]]
        closed = {body["group"] for _, body in self.of("closed")}
        known = self.answers.keys() | self.withdrawn
        late = {name for _, body in self.of("selected") if body["group"] in closed for name in body["to_label"]}
        return [name for name in asked if name not in known and name not in late]

    @property
    def open_charge(self) -> tuple[int, str] | None:
        """The number and kind of a charge that was not followed by its release."""
        still: tuple[int, str] | None = None
        for number, kind, _, _ in self.rows:
            if kind.startswith("charged-"):
                still = (number, kind)
            elif kind in ("selected", "trained", "mean-released", "given-up"):
                still = None
        return still


def read_facts(folder: Path) -> Facts:
    """Read the database with nothing but SQLite, and recompute the chain of hashes."""
    connection = sqlite3.connect(folder / "campaign.db")
    try:
        rows = connection.execute("SELECT number, at, kind, body, hash FROM facts ORDER BY number").fetchall()
    finally:
        connection.close()
    previous = ""
    for place, (number, at, kind, body, hashed) in enumerate(rows, start=1):
        previous = hashlib.sha256("\n".join((previous, str(number), at, kind, body)).encode()).hexdigest()
        require(number == place and previous == hashed, f"fact {number} does not follow from the facts before it")
    return Facts(tuple((number, kind, json.loads(body), hashed) for number, _, kind, body, hashed in rows))


def released(folder: Path, *, without: str = "") -> tuple[list[dict[str, Any]], list[dict[str, bytes] | None]]:
    """What left the machine: whom selections chose, thresholds, and every model's weights, bit for bit.

    `without` is a file that is not read.
    """
    facts = read_facts(folder)
    public = ("group", "to_label", "units", "retired", "threshold")
    chosen = [{name: body[name] for name in public} for _, body in facts.of("selected")]
    models: list[dict[str, bytes] | None] = []
    for _, body in facts.of("trained"):
        weights = {} if body["file"] == without else load_file(folder / body["file"])
        models.append({name: value.tobytes() for name, value in sorted(weights.items())} or None)
    return chosen, models


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class Observer:
    """What was seen of one campaign so far, and what therefore must not change."""

    folder: Path
    scratch: Path
    facts: Facts = field(default_factory=lambda: Facts(()))
    epsilon: float = 0.0
    # What somebody was told is recorded.
    acknowledged: dict[str, Any] = field(default_factory=dict)
    # The hashes of models that could be seen under their names.
    models: dict[str, str] = field(default_factory=dict)
    # Every key that was seen, by the number of its fact.
    keys: dict[str, bytes] = field(default_factory=dict)
    # Whether a phase was given up or a record withdrawn: then other things are released than undisturbed.
    is_changed: bool = False

    def look(self) -> Facts:
        """Check everything that must hold at any time."""
        copy = self.scratch / self.folder.name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy)
        try:
            self._look_at(copy)
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        return self.facts

    def _look_at(self, copy: Path) -> None:
        self._note_keys(copy)
        waiting = answers_waiting(copy)
        try:
            facts = read_facts(copy)
        except (sqlite3.Error, ValueError) as error:
            raise Violation(f"the database cannot be read: {error}") from error
        before = self.facts.rows
        require(facts.rows[: len(before)] == before, "a committed fact is gone or different")
        self._releases_have_charges(copy, facts)
        for name, answer in self.acknowledged.items():
            known = waiting.get(name, facts.answers.get(name))
            require(known == answer, f"the answer about {name} was acknowledged as {answer} and is {known}")
        self._dpal_reads(copy)
        self.facts = facts

    def _releases_have_charges(self, copy: Path, facts: Facts) -> None:
        committed: dict[int, str] = {}
        used: set[tuple[str, int]] = set()
        for number, kind, body, _ in facts.rows:
            if kind.startswith("charged-"):
                committed[number] = kind
            elif kind in CHARGES:
                require(committed.get(body["charge"]) == CHARGES[kind], f"fact {number} ({kind}) was not charged")
                require((kind, body["charge"]) not in used, f"fact {number} ({kind}) is a second one for its charge")
                used.add((kind, body["charge"]))
        made = {body["phase"]: body["sha256"] for _, body in facts.of("produced")}
        for path in (copy / "checkpoints").glob("phase-*.safetensors"):
            phase = int(path.stem.removeprefix("phase-")) - 1
            require(phase in made, f"{path.name} can be seen, but no charge and hash is committed for it")
            require(made[phase] == _digest(path), f"{path.name} is not the model that was recorded")
            require(self.models.setdefault(path.name, made[phase]) == made[phase], f"{path.name} is another model now")
        for name in self.models:
            require((copy / "checkpoints" / name).exists(), f"{name} was there and is gone")

    def _note_keys(self, copy: Path) -> None:
        for path in (copy / "seals").glob("*.key"):
            key = path.read_bytes()
            if any(key) and len(key) >= 32:
                self.keys.setdefault(f"{path.stem}", key)

    def _dpal_reads(self, copy: Path) -> None:
        try:
            campaign = Campaign(copy)
            spent = campaign.status().epsilon_spent
            verification = campaign.verify()
        except (DpalError, OSError) as error:
            raise Violation(f"the campaign cannot be read: {error}") from error
        if not verification.holds:
            wrong = [f"{check.what}: {check.detail}" for check in verification.checks if not check.holds]
            raise Violation(f"verify does not hold: {'; '.join(wrong)}")
        require(spent >= self.epsilon - _TOLERANCE, f"ε fell from {self.epsilon} to {spent}")
        require(spent <= campaign.plan.epsilon + _TOLERANCE, f"ε {spent} is more than the planned")
        self.epsilon = max(self.epsilon, spent)

    def end(self, files: frozenset[str], known: frozenset[str]) -> None:
        """What must hold at the end: nothing is left over, and no key that ever was can be found."""
        extra = sorted(name for name in files - known if name not in ALSO)
        require(not extra, f"left over at the end: {extra}")
        for path in self.folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                for number, key in self.keys.items():
                    require(key[:32] not in content, f"the key of fact {number} is in {path.name}")


# What a campaign may have at its end that an undisturbed, simulated one has not.
ALSO = ("inbox.db", "campaign.spent", "run.log", "start.lock")


def answers_waiting(folder: Path) -> dict[str, Any]:
    """The answers that are in the inbox and not yet taken in, and those that are."""
    path = folder / "inbox.db"
    if not path.exists():
        return {}
    connection = sqlite3.connect(path)
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            return {}
        rows = connection.execute("SELECT body FROM entries ORDER BY number").fetchall()
    finally:
        connection.close()
    bodies = [json.loads(body) for (body,) in rows]
    return {body["question"]: body["answer"] for body in bodies if body["kind"] == "answer"}
