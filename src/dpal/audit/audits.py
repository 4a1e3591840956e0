"""A whole audit: every attack that applies to a plan, one after the other, and all findings together."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from dpal import __version__
from dpal.audit.attack import FALSE_ALARM, RISK, Attack, Effort, Finding, Target
from dpal.audit.changed_data import ReorderedDataAttack, ReplayedStepAttack
from dpal.audit.input_canaries import InputCanaries
from dpal.audit.lone_canary import LoneCanaryAttack
from dpal.audit.many_canaries import CampaignAttack, ReplayAttack, TrainingAttack, UnitAttack
from dpal.audit.membership_inference import MembershipInference
from dpal.audit.rounding import RoundingAttack
from dpal.audit.selection_alone import ChoiceAttack, CutAttack
from dpal.campaign.reader import plan_hash
from dpal.errors import InvalidArgument
from dpal.privacy.rounding import rounded_up
from dpal.training.threads import fastest_threads

SCHEMA_VERSION = 1
# In the order in which they run and are shown.
ATTACKS: dict[str, type[Attack]] = {
    kind.name: kind
    for kind in (
        TrainingAttack,
        UnitAttack,
        LoneCanaryAttack,
        CutAttack,
        ChoiceAttack,
        CampaignAttack,
        ReplayAttack,
        InputCanaries,
        MembershipInference,
        RoundingAttack,
        ReorderedDataAttack,
        ReplayedStepAttack,
    )
}


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


def audit(
    target: Target,
    effort: Effort,
    *,
    names: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Run the attacks with these names, or all that apply, on dpal's own code with made-up records."""
    for name in names:
        if name not in ATTACKS:
            raise InvalidArgument("attack", name, f"one of {', '.join(ATTACKS)}")
    attacks = [kind() for name, kind in ATTACKS.items() if not names or name in names]
    attacks = [attack for attack in attacks if attack.applies(target)]
    if not attacks:
        raise InvalidArgument("attacks", list(names), "such that at least one of them applies to this plan")
    findings: list[Finding] = []
    with fastest_threads():
        for number, attack in enumerate(attacks, start=1):
            tell(f"attack {number} of {len(attacks)}: {attack.name}")
            findings.append(attack.run(target, effort))
    plan = target.plan
    return Audit(
        claimed_epsilon=plan.epsilon,
        delta=plan.setting.target_delta,
        unit=plan.setting.unit,
        promise=plan.setting.promise,
        findings=tuple(findings),
        seed=effort.seed,
        dpal_version=__version__,
        machine=f"{target.torch_device.type}, {platform.machine()}, Python {platform.python_version()}",
        date=datetime.now(UTC).date().isoformat(),
        plan_hash=plan_hash(plan.to_json()),
    )


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
