import json
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from selections import seeded

import dpal
from dpal.errors import DpalError, InvalidArgument
from dpal.selection import NOBODY, SELECTIONS, Chosen, LaplaceSelection, RandomSelection
from dpal.selection.registry import selection_from_json, selection_kind

SCORES = np.random.default_rng(5).beta(2, 3, 5000)
SMALL = {"target_epsilon": 8, "pool_size": 2000, "accountant": "rdp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EverySecond(RandomSelection):
    """Records of the user's own choice: it does not look at scores."""

    name: ClassVar[str] = "every-second"

    def _choose(self, grid, randomness) -> Chosen:
        return Chosen(to_label=np.arange(0, 2 * self.query_size, 2), retired=NOBODY)


class Leaky(LaplaceSelection):
    """Another class of the user's own."""


@pytest.fixture
def own_module(monkeypatch: pytest.MonkeyPatch) -> str:
    """The module of this file under a name that can be imported."""
    monkeypatch.setitem(sys.modules, EverySecond.__module__, sys.modules[__name__])
    return f"{EverySecond.__module__}:EverySecond"


@pytest.mark.parametrize("name", SELECTIONS)
def test_what_runs_is_what_the_plan_charges(name: str) -> None:
    plan = dpal.plan(**SMALL, selection=name, accounting="renyi")
    for selection in plan.selections:
        assert type(selection) is SELECTIONS[name]
        assert selection_from_json(selection.to_json()) == selection
        chosen = selection.choose(SCORES[: selection.unlabelled], highest=1.0, randomness=seeded())
        assert len(chosen.to_label) > 0.7 * selection.query_size


def test_a_selection_of_ones_own_by_its_import_path(own_module: str) -> None:
    plan = dpal.plan(**SMALL, selection=own_module)
    assert plan.selections[0].to_json()["mechanism"] == own_module
    chosen = plan.selections[0].choose(SCORES[:1600], highest=1.0, randomness=seeded())
    assert chosen.to_label.tolist()[:3] == [0, 2, 4]
    assert dpal.read_plan(plan.to_text(), import_code=True) == plan
    # A document alone does not decide which code is imported: what it says is released is enough for ε.
    recorded = dpal.read_plan(plan.to_text())
    assert recorded.epsilon == plan.epsilon and recorded.to_text() == plan.to_text()
    with pytest.raises(DpalError, match="its code was not imported"):
        recorded.selections[0].choose(SCORES[:1600], highest=1.0, randomness=seeded())


def test_a_document_that_says_less_than_its_code_releases_does_not_run(own_module: str) -> None:
    document = Leaky(query_size=5, unlabelled=100, epsilon=2.0, grid_steps=4).to_json()
    path = own_module.replace("EverySecond", "Leaky")
    assert document["mechanism"] == path
    assert selection_from_json(document, import_code=True).released.choice is not None
    assert json.dumps(selection_from_json(document).to_json()) == json.dumps(document)
    document["released"]["choice"]["epsilon"] = 0.1
    with pytest.raises(InvalidArgument, match="what its code says it releases"):
        selection_from_json(document, import_code=True)
    for broken in ({"choice": None}, None, {"choice": {"mechanism": "magic"}, "threshold": None}):
        with pytest.raises(InvalidArgument):
            selection_from_json({**document, "released": broken})


@pytest.mark.parametrize("name", ["magic", "", 7, None, "os:getcwd", "nowhere.at.all:Thing", "math:thing"])
def test_what_is_not_a_selection_is_refused(name: object) -> None:
    with pytest.raises(InvalidArgument, match="selection"):
        selection_kind(name)


def test_a_plan_that_selects_more_than_there_is_is_refused() -> None:
    document = {"mechanism": "exponential", "query_size": 20, "unlabelled": 10, "weight_epsilon": 1.0}
    with pytest.raises(InvalidArgument, match="query_size of a selection is 20"):
        selection_from_json(document)
