"""An audit as a document: written, read back, and refused where it is not one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpal.audit.results import Audit, Finding, read_audit
from dpal.errors import InvalidArgument


def found(
    attack: str, bound: float, *, broken: bool = False, claimed: float = 3.0, is_about_plan: bool = True
) -> Finding:
    return Finding(
        attack=attack,
        what="Someone guesses.",
        claimed_epsilon=claimed,
        delta=1e-5,
        epsilon_bound=bound,
        broken=broken,
        is_about_plan=is_about_plan,
        guesses=100,
        curve=((0.0, 0.0), (0.5, 0.75), (1.0, 1.0)),
    )


def audit_of(*findings: Finding) -> Audit:
    return Audit(
        claimed_epsilon=2.99991,
        delta=1e-5,
        unit="record",
        promise="inside",
        findings=findings,
        seed=4,
        dpal_version="0.2.0",
        machine="cpu",
        date="2026-01-31",
        plan_hash="a" * 64,
    )


def test_the_strongest_finding_decides_and_epsilon_is_rounded_up() -> None:
    audit = audit_of(found("training", 1.209), found("campaign", 0.1))
    assert audit.strongest is not None and audit.strongest.attack == "training"
    assert audit.verdict == (
        "No attack got beyond the promise of ε ≤ 3.0000. The strongest on the whole plan (training) rules out every ε "
        "below 1.20."
    )
    assert audit_of(found("training", 1.2), found("cut", 0.1, broken=True)).verdict.startswith("BROKEN: what cut saw")


def test_what_is_found_about_a_single_step_is_no_bound_on_the_plan() -> None:
    """A step in which everyone takes part costs more than a plan in which few do: 1.6 next to ε ≤ 1 was no alarm."""
    step = found("lone-canary", 4.2, claimed=4.9, is_about_plan=False)
    audit = audit_of(found("training", 0.1), step)
    assert audit.strongest is not None and audit.strongest.attack == "training"
    assert "4.20" not in audit.verdict
    alone = audit_of(step)
    assert alone.strongest is None and alone.verdict.endswith("None of them was on the whole plan.")


def test_a_bound_above_the_claim_is_not_called_within_it() -> None:
    audit = audit_of(found("training", 3.1), found("cut", 0.1))
    assert audit.verdict.startswith("UNCLEAR: training rules out every ε below 3.10, and 3.0000 is claimed")
    assert not audit.is_broken


def test_the_largest_of_several_bounds_has_the_risk_of_them_all() -> None:
    step = found("lone-canary", 4.2, claimed=4.9, is_about_plan=False)
    searched = replace(found("rounding", 0.0), guesses=0)
    assert audit_of(found("training", 1.2)).risk_of_strongest == 0.05
    assert audit_of(*(found(name, 1.2) for name in "abc"), step, searched).risk_of_strongest == 0.15
    assert audit_of(*(found(str(number), 1.2) for number in range(30))).risk_of_strongest == 1.0


def test_a_written_audit_is_read_back(tmp_path: Path) -> None:
    audit = audit_of(found("training", 1.2), found("cut", 0.1))
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(audit.to_json()), encoding="utf-8")
    assert read_audit(file) == audit


@pytest.mark.parametrize(
    "change",
    [
        {"claimed_epsilon": "3"},
        {"date": 4},
        {"findings": []},
        {"findings": [1]},
        {"findings": [{}]},
        {"epsilon_bound": None},
        {"epsilon_bound": "1.2"},
        {"epsilon_bound": float("nan")},
        {"broken": "no"},
        {"attack": ["training"]},
    ],
)
def test_a_field_that_is_not_what_it_is_for_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    """A certificate repeats what an audit says."""
    document: Any = audit_of(found("training", 1.2)).to_json()
    name = next(iter(change))
    (document if name in document and name != "broken" else document["findings"][0]).update(change)
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InvalidArgument, match="dpal audit"):
        read_audit(file)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 99}', "\x00"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match="dpal audit"):
        read_audit(file)
    with pytest.raises(InvalidArgument, match="dpal audit"):
        read_audit(tmp_path / "nothing.json")
