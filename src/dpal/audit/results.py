"""What an audit found, as one document: for a page, a file, a certificate. Needs no torch."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from dpal.errors import InvalidArgument
from dpal.privacy.rounding import rounded_up

SCHEMA_VERSION = 1
# A bound is wrong with at most this probability.
RISK = 0.05
# "Broken" is said with at most this probability where nothing is.
FALSE_ALARM = 1e-6
LIMITS = (
    "An audit can show that a promise is broken, and never that it holds: another attack may do better. What holds is "
    "proven (docs/maths); the audit looks for mistakes in the code that carries it out. All records in it are made up."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one attack on one plan found."""

    attack: str
    what: str
    claimed_epsilon: float
    delta: float
    # The largest ε that is ruled out; 0 if none is.
    epsilon_bound: float
    # The same if the trade-off between both errors is Gaussian, as it nearly is after many steps. None: it is not.
    gaussian_bound: float | None = None
    # Whether what was seen is impossible under the claim.
    broken: bool = False
    guesses: int = 0
    runs: int = 0
    seconds: float = 0.0
    note: str = ""
    # False-positive and true-positive rates, for a picture.
    curve: tuple[tuple[float, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What all attacks on one plan found."""

    claimed_epsilon: float
    delta: float
    unit: str
    promise: str
    findings: tuple[Finding, ...]
    seed: int
    dpal_version: str
    machine: str
    date: str
    # Of the plan's document, so that a certificate can tell whether it is about the same plan.
    plan_hash: str

    @property
    def strongest(self) -> Finding:
        """The finding with the largest bound."""
        return max(self.findings, key=lambda finding: finding.epsilon_bound)

    @property
    def is_broken(self) -> bool:
        return any(finding.broken for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        broken = [finding.attack for finding in self.findings if finding.broken]
        if broken:
            return (
                f"BROKEN: what {', '.join(broken)} saw is impossible under the promise. Do not release anything, and "
                "report it (SECURITY.md)."
            )
        return (
            f"No attack got beyond the promise of ε ≤ {rounded_up(self.claimed_epsilon, 4):.4f}. The strongest "
            f"({self.strongest.attack}) rules out every ε below {self.strongest.epsilon_bound:.2f}."
        )

    def to_json(self) -> dict[str, object]:
        document = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "findings"}
        return {
            "schema_version": SCHEMA_VERSION,
            **document,
            "verdict": self.verdict,
            "broken": self.is_broken,
            "bounds_are_wrong_with_probability_at_most": RISK,
            "broken_is_wrong_with_probability_at_most": FALSE_ALARM,
            "findings": [asdict(finding) for finding in self.findings],
        }


def read_audit(path: str | Path) -> Audit:
    """An audit from the JSON file that `dpal audit --json` wrote."""
    try:
        document: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        return _audit_of(cast("Mapping[str, Any]", document))
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise InvalidArgument("the audit's file", str(path), "the JSON file that dpal audit --json wrote") from error


def _audit_of(document: Mapping[str, Any]) -> Audit:
    if document["schema_version"] != SCHEMA_VERSION:
        raise InvalidArgument("schema_version of the audit", document["schema_version"], f"{SCHEMA_VERSION}")
    findings: list[Finding] = []
    for stated in document["findings"]:
        values: dict[str, Any] = {**stated, "curve": tuple((float(x), float(y)) for x, y in stated["curve"])}
        findings.append(Finding(**values))
    names = {field.name for field in fields(Audit)} - {"findings"}
    return Audit(findings=tuple(findings), **{name: document[name] for name in names})
