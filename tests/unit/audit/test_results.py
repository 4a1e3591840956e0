"""An audit as a document: written, read back, and refused where it is not one."""

import json
from pathlib import Path

import pytest

from dpal.audit.results import Audit, Finding, read_audit
from dpal.errors import InvalidArgument


def found(attack: str, bound: float, *, broken: bool = False) -> Finding:
    return Finding(
        attack=attack,
        what="Someone guesses.",
        claimed_epsilon=3.0,
        delta=1e-5,
        epsilon_bound=bound,
        broken=broken,
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
    audit = audit_of(found("training", 1.2), found("cut", 0.1))
    assert audit.strongest.attack == "training"
    assert audit.verdict == (
        "No attack got beyond the promise of ε ≤ 3.0000. The strongest (training) rules out every ε below 1.20."
    )
    assert audit_of(found("training", 1.2), found("cut", 0.1, broken=True)).verdict.startswith("BROKEN: what cut saw")


def test_a_written_audit_is_read_back(tmp_path: Path) -> None:
    audit = audit_of(found("training", 1.2), found("cut", 0.1))
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(audit.to_json()), encoding="utf-8")
    assert read_audit(file) == audit


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 99}', "\x00"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match="dpal audit"):
        read_audit(file)
    with pytest.raises(InvalidArgument, match="dpal audit"):
        read_audit(tmp_path / "nothing.json")
