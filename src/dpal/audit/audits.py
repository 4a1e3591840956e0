"""A whole audit: every attack that applies to a plan, one after the other."""

import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from dpal import __version__
from dpal.audit.attack import Attack, Effort, Target
from dpal.audit.changed_data import ReorderedDataAttack, ReplayedStepAttack
from dpal.audit.input_canaries import InputCanaries
from dpal.audit.lone_canary import LoneCanaryAttack
from dpal.audit.many_canaries import CampaignAttack, ReplayAttack, TrainingAttack, UnitAttack
from dpal.audit.membership_inference import MembershipInference
from dpal.audit.results import Audit, Finding
from dpal.audit.rounding import RoundingAttack
from dpal.audit.selection_alone import ChoiceAttack, CutAttack
from dpal.campaign.reader import plan_hash
from dpal.errors import InvalidArgument
from dpal.training.threads import fastest_threads

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
