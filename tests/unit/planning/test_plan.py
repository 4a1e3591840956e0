from dataclasses import FrozenInstanceError, dataclass, replace
from typing import ClassVar

import pytest
from settings import SMALL

import dpal
from dpal.selection import LaplaceSelection


@pytest.fixture(scope="module")
def small() -> dpal.Plan:
    return dpal.plan(**SMALL)


def test_a_plan_is_frozen(small: dpal.Plan) -> None:
    with pytest.raises(FrozenInstanceError):
        small.epsilon = 1.0


def test_the_document_has_what_it_promises(small: dpal.Plan) -> None:
    document = small.to_json()
    assert document["schema_version"] == 5
    for index, phase in enumerate(document["phases"]):
        assert len(phase["sampling_probabilities"]) == index + 1
        assert set(phase) == {"steps", "noise_multiplier", "expected_batch_size", "sampling_probabilities"}
    assert [selection["mechanism"] for selection in document["selections"]] == ["cut", "cut"]
    assert document["promise"] == "inside"
    assert [group["size"] for group in document["groups"]] == [400, 300, 100]
    assert all(len(group["epsilon_by_phase"]) == 3 for group in document["groups"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Own(LaplaceSelection):
    name: ClassVar[str] = "own"


def test_a_plan_names_its_own_planner_and_selections() -> None:
    plan = dpal.plan(**SMALL)
    assert plan.foreign_code == ()
    own = Own(query_size=2, unlabelled=10, epsilon=1.0, grid_steps=4)
    named = replace(plan, planner="clinic.plans:careful", selections=(own,))
    assert named.foreign_code == tuple(sorted(["clinic.plans:careful", f"{Own.__module__}:Own"]))
