import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from selections import seeded

import dpal
from dpal.errors import InvalidArgument
from dpal.selection import NOBODY, SELECTIONS, Chosen, RandomSelection
from dpal.selection.registry import selection_from_json, selection_kind

SCORES = np.random.default_rng(5).beta(2, 3, 5000)
SMALL = {"target_epsilon": 8, "pool_size": 2000, "accountant": "rdp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EverySecond(RandomSelection):
    """Records of the user's own choice: it does not look at scores."""

    name: ClassVar[str] = "every-second"

    def _choose(self, grid, randomness) -> Chosen:
        return Chosen(to_label=np.arange(0, 2 * self.query_size, 2), retired=NOBODY)


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
    # A document alone does not decide which code is imported.
    with pytest.raises(InvalidArgument, match="does not decide which other code"):
        dpal.read_plan(plan.to_text())
    assert dpal.read_plan(plan.to_text(), import_code=True) == plan


@pytest.mark.parametrize("name", ["magic", "", 7, None, "os:getcwd", "nowhere.at.all:Thing", "math:thing"])
def test_what_is_not_a_selection_is_refused(name: object) -> None:
    with pytest.raises(InvalidArgument, match="selection"):
        selection_kind(name)


def test_a_plan_that_selects_more_than_there_is_is_refused() -> None:
    document = {"mechanism": "exponential", "query_size": 20, "unlabelled": 10, "weight_epsilon": 1.0}
    with pytest.raises(InvalidArgument, match="query_size of a selection is 20"):
        selection_from_json(document)
