"""What a tracker is told: public facts, ε by phase from the charges alone, and the same whatever happened inside."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_campaigns import linear_campaign, linear_plan

from dpal.errors import DpalError
from dpal.reports.certificate import certificate_of
from dpal.reports.tracked_facts import certificate_text, epsilon_by_phase, require_public, tracked_facts


@pytest.mark.parametrize("accounting", ["branch", "renyi", "basic"])
@pytest.mark.parametrize("planner", ["naive", "step-amplification", "continual"])
def test_epsilon_by_phase_ends_at_the_certificates(tmp_path: Path, planner: str, accounting: str) -> None:
    plan = linear_plan(planner=planner, selection="laplace", accounting=accounting)
    shown: list[float] = []

    def expert(name: str, record: object) -> str:
        shown.append(campaign.status().epsilon_spent)
        return "yes" if name > "r10" else "no"

    campaign = linear_campaign(tmp_path / "c", plan=plan, oracle=expert)
    campaign.run()
    certificate = certificate_of(tmp_path / "c")
    spent = epsilon_by_phase(campaign.state(), plan)
    assert list(spent) == list(range(1, len(plan.phases) + 1))
    assert list(spent.values()) == sorted(spent.values()) and spent[len(plan.phases)] == certificate["epsilon"]
    # Never below what status said while the phases were under way.
    assert all(any(0 <= after - before <= 2e-6 for before in shown) or after >= max(shown) for after in spent.values())


def test_only_a_finished_private_campaign(tmp_path: Path) -> None:
    with pytest.raises(DpalError, match="nothing is private"):
        require_public(linear_campaign(tmp_path / "simulated", seed=7, not_private=True))
    campaign = linear_campaign(tmp_path / "c")
    with pytest.raises(DpalError, match=r"is not finished \(next: draw the initial set\)"):
        require_public(campaign)
    campaign.run()
    require_public(campaign)


def test_what_happened_inside_changes_nothing_but_the_ledgers_hash(tmp_path: Path) -> None:
    """Late corrections, skips and withdrawals: the same facts, except for what is a hash of everything."""
    campaign = linear_campaign(tmp_path / "c")
    campaign.run()

    def told() -> object:
        certificate = certificate_of(tmp_path / "c")
        facts = tracked_facts(campaign, certificate, certificate_text(certificate))
        hashes = ("dpal.ledger_hash", "dpal.certificate_sha256")
        tags = {name: value for name, value in facts.tags.items() if name not in hashes}
        certificate |= {"ledger_hash": "", "checks": certificate["checks"] | {"ledger_hash": ""}}
        return replace(facts, tags=tags), certificate

    before, counts = told(), campaign.status().internal
    ids = campaign.state().groups[0]
    campaign.add_answers({ids[0]: "skip", ids[1]: "cannot-tell", ids[2]: "no", ids[3]: "yes"}, source="late")
    campaign.withdraw(ids[4:6])
    assert campaign.status().internal != counts
    assert told() == before
