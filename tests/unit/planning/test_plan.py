from dataclasses import FrozenInstanceError

import pytest
from settings import SMALL

import dpal


@pytest.fixture(scope="module")
def small() -> dpal.Plan:
    return dpal.plan(**SMALL)


def test_a_plan_is_frozen(small: dpal.Plan) -> None:
    with pytest.raises(FrozenInstanceError):
        small.epsilon = 1.0


def test_the_document_has_what_it_promises(small: dpal.Plan) -> None:
    document = small.to_json()
    assert document["schema_version"] == 2
    for index, phase in enumerate(document["phases"]):
        assert len(phase["sampling_probabilities"]) == index + 1
        assert set(phase) == {"steps", "noise_multiplier", "expected_batch_size", "sampling_probabilities"}
    assert [selection["mechanism"] for selection in document["selections"]] == ["threshold", "threshold"]
    assert [group["size"] for group in document["groups"]] == [400, 300, 100]
    assert all(len(group["epsilon_by_phase"]) == 3 for group in document["groups"])
