"""What an audit found, as one document: for a page, a file, a certificate. Needs no torch."""

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from dpal.errors import InvalidArgument
from dpal.privacy.rounding import rounded_up

SCHEMA_VERSION = 2
# A bound is wrong with at most this probability.
RISK = 0.05
# "Broken" is said with at most this probability where nothing is.
FALSE_ALARM = 1e-6
LIMITS = (
    "An audit can show that a promise is broken, and never that it holds: another attack may do better. What holds is "
    "proven (docs/maths); the audit looks for mistakes in the code that carries it out. All records in it are made up."
)


# Of what is read from a file: a bound that is not a number says nothing.
_FINITE = ConfigDict(allow_inf_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one attack on one plan found."""

    __pydantic_config__: ClassVar[ConfigDict] = _FINITE

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
    # Whether the claim is that of the whole plan. A single step or selection has an ε of its own, which may be larger.
    is_about_plan: bool = True
    guesses: int = 0
    runs: int = 0
    seconds: float = 0.0
    note: str = ""
    # False-positive and true-positive rates, for a picture.
    curve: tuple[tuple[float, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What all attacks on one plan found."""

    __pydantic_config__: ClassVar[ConfigDict] = _FINITE

    claimed_epsilon: float
    delta: float
    unit: str
    promise: str
    findings: Annotated[tuple[Finding, ...], Field(min_length=1)]
    seed: int
    dpal_version: str
    machine: str
    date: str
    # Of the plan's document, so that a certificate can tell whether it is about the same plan.
    plan_hash: str

    @property
    def strongest(self) -> Finding | None:
        """The finding with the largest bound on the ε of the whole plan; None if nothing attacked the whole plan."""
        return max(self._about_plan, key=lambda finding: finding.epsilon_bound, default=None)

    @property
    def risk_of_strongest(self) -> float:
        """How likely the largest bound is wrong, at most: each bound has its own risk, and one is picked out of all."""
        return round(min(1.0, RISK * max(1, sum(finding.guesses > 0 for finding in self._about_plan))), 6)

    @property
    def _about_plan(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_about_plan]

    @property
    def above_claim(self) -> tuple[Finding, ...]:
        """Findings whose bound is above the claim, by less than it takes to call the claim broken."""
        return tuple(one for one in self.findings if one.epsilon_bound > one.claimed_epsilon and not one.broken)

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
        if self.above_claim:
            above = "; ".join(
                f"{one.attack} rules out every ε below {rounded_down(one.epsilon_bound)}, and "
                f"{rounded_up(one.claimed_epsilon, 4):.4f} is claimed of what it attacked"
                for one in self.above_claim
            )
            return (
                f"UNCLEAR: {above}. Chance alone does that in at most {RISK:.0%} of all attacks. Run the audit again "
                "with another --seed; if it says so again, report it (SECURITY.md)."
            )
        held = f"No attack got beyond the promise of ε ≤ {rounded_up(self.claimed_epsilon, 4):.4f}."
        if self.strongest is None:
            return f"{held} None of them was on the whole plan."
        return (
            f"{held} The strongest on the whole plan ({self.strongest.attack}) rules out every ε below "
            f"{rounded_down(self.strongest.epsilon_bound)}."
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


def rounded_down(bound: float) -> str:
    """A lower bound in words: rounded up, it would say more than was proven."""
    return f"{math.floor(bound * 100) / 100:.2f}"


def read_audit(path: str | Path) -> Audit:
    """An audit from the JSON file that `dpal audit --json` wrote."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        document: Any = json.loads(text)
        if document["schema_version"] != SCHEMA_VERSION:
            raise InvalidArgument("schema_version of the audit", document["schema_version"], f"{SCHEMA_VERSION}")
        # A certificate repeats what stands there: every field must be what it is for.
        return TypeAdapter(Audit).validate_json(text, strict=True)
    # Damaged, or not an audit: pydantic's ValidationError is a ValueError.
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidArgument("the audit's file", str(path), "the JSON file that dpal audit --json wrote") from error
