"""A whole audit: which attacks run, what is written down, and what is read back."""

import pytest
from audited_plans import target
from planted_bugs import noise_halved

from dpal.audit.attack import Effort
from dpal.audit.audits import ATTACKS, audit
from dpal.errors import InvalidArgument

TINY = Effort(canaries=1_000, looks=200, shadow_models=4)


def test_attacks_that_apply_run_in_order() -> None:
    told: list[str] = []
    result = audit(target(), TINY, names=["cut", "training"], tell=told.append)
    assert [finding.attack for finding in result.findings] == ["training", "cut"]
    assert told == ["attack 1 of 2: training", "attack 2 of 2: cut"]
    assert not result.is_broken
    assert "No attack got beyond the promise of ε ≤ 2.9998" in result.verdict


def test_a_broken_promise_is_said_first() -> None:
    with noise_halved():
        result = audit(target(), Effort(canaries=8_000), names=["training"])
    assert result.is_broken
    assert result.verdict.startswith("BROKEN: what training saw is impossible under the promise.")
    assert result.to_json()["broken"] is True


def test_wrong_names_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="attack is 'cuts', but must be one of training"):
        audit(target(), TINY, names=["cuts"])
    with pytest.raises(InvalidArgument, match="at least one of them applies"):
        audit(target(), TINY, names=["choice"])


def test_every_attack_says_what_it_is() -> None:
    for name, kind in ATTACKS.items():
        assert kind.name == name
        assert kind.what.endswith(".")
        assert kind.__doc__
