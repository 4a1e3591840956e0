"""Acquisition functions of a user's own: one that looks at other records is refused, and could not see them anyway."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_campaigns import linear_campaign, linear_model, linear_pool
from torch import nn

from dpal.campaign.campaign import Campaign
from dpal.campaign.store import Store
from dpal.errors import InvalidArgument, MixesRecords
from dpal.selection.acquisition import Acquisition, Bald, Entropy, LeastConfidence
from dpal.selection.acquisition_checks import is_foreign, require_separate_records, scores_by_record
from dpal.selection.registry import ACQUISITIONS

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gini(Acquisition):
    """Sound: one minus the sum of squares."""

    name: ClassVar[str] = "gini"
    power: float = 2.0

    def _scores(self, probabilities: Array) -> Array:
        return 1 - (probabilities**self.power).mean(axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Bald):
    """Sound, with several passes."""

    name: ClassVar[str] = "spread"

    def _scores(self, probabilities: Array) -> Array:
        return probabilities.max(axis=0).max(axis=-1) - probabilities.min(axis=0).max(axis=-1) * 0.5


def own(of: Callable[[Array], Array], base: type[Acquisition] = Entropy) -> type[Acquisition]:
    """A class whose entropies (or other scores) are changed by a function of the whole batch."""

    class Own(base):  # type: ignore[misc, valid-type]
        def _scores(self, probabilities: Array) -> Array:
            return of(base._scores(self, probabilities))

    return Own


MIXING: dict[str, Callable[[Array], Array]] = {
    "largest": lambda scores: scores / max(scores.max(), 0.01) if len(scores) > 1 else scores,
    "largest above a bound": lambda scores: (
        np.minimum(scores, 0.5) if scores.max() > 0.95 and len(scores) > 1 else scores
    ),
    "smallest": lambda scores: scores - scores.min() if len(scores) > 1 else scores,
    "mean": lambda scores: np.clip(scores - scores.mean() * 1e-9, 0, 1) if len(scores) > 1 else scores,
    "rank": lambda scores: scores.argsort().argsort() / max(len(scores), 2),
    "size": lambda scores: scores * (0.5 if len(scores) == 7 else 1.0),
    "one bit": lambda scores: np.nextafter(scores, 0) if len(scores) > 1 else scores,
    "neighbour": lambda scores: (scores + np.roll(scores, 1)) / 2,
    "first": lambda scores: np.where(np.arange(len(scores)) == 0, scores, scores * 0.9),
    "last of many": lambda scores: np.where(np.arange(len(scores)) == 30, scores * 0.9, scores),
}


@pytest.mark.parametrize("kind", MIXING)
@pytest.mark.parametrize("multi_label", [False, True])
def test_mixing_is_refused(kind: str, multi_label: bool) -> None:
    for base in (Entropy, Bald):
        with pytest.raises(MixesRecords, match=r"Own gives a record another score.*Nothing was charged"):
            require_separate_records(own(MIXING[kind], base)(classes=4, multi_label=multi_label))


def test_what_is_kept_from_earlier_calls_is_refused() -> None:
    largest = [0.5]

    def remembering(scores: Array) -> Array:
        largest[0] = max(largest[0], float(scores.max()))
        return np.minimum(scores, largest[0] * 0.9)

    with pytest.raises(MixesRecords, match="when it is scored again"):
        require_separate_records(own(remembering)(classes=3))
    calls = [0]

    def counting(scores: Array) -> Array:
        calls[0] += 1
        return scores * (0.9 if calls[0] % 50 == 0 else 1.0)

    with pytest.raises(MixesRecords):
        require_separate_records(own(counting)(classes=3))


def test_a_range_that_follows_the_records_is_refused() -> None:
    seen = [1.0]

    class Widening(Entropy):
        @property
        def highest(self) -> float:
            return seen[0]

        def _scores(self, probabilities: Array) -> Array:
            found = super()._scores(probabilities)
            seen[0] = max(seen[0], 1 + float(found.max()))
            return found

    with pytest.raises(MixesRecords, match="must be constants"):
        require_separate_records(Widening(classes=3))


@pytest.mark.parametrize("wrong", [np.nan, -0.1, 1.1])
def test_scores_outside_their_range_are_refused(wrong: float) -> None:
    class Outside(Entropy):
        def scores(self, probabilities: NDArray[np.floating]) -> Array:
            return np.full(len(probabilities), wrong)

    with pytest.raises(InvalidArgument, match=r"Outside on made-up records.*from 0 to its highest, 1"):
        require_separate_records(Outside(classes=3))


def test_one_score_for_all_records_is_refused() -> None:
    class Total(Entropy):
        def scores(self, probabilities: NDArray[np.floating]) -> Array:
            return np.asarray(0.5)

    with pytest.raises(InvalidArgument, match="one score per record"):
        require_separate_records(Total(classes=3))


@pytest.mark.parametrize("multi_label", [False, True])
def test_sound_ones_are_taken(multi_label: bool) -> None:
    sound: list[Acquisition] = [
        Gini(classes=5, multi_label=multi_label),
        Spread(classes=5, multi_label=multi_label, number_of_passes=4),
        own(lambda scores: scores**2)(classes=5, multi_label=multi_label),
        own(lambda scores: np.sqrt(scores), LeastConfidence)(classes=5, multi_label=multi_label),
    ]
    for acquisition in sound:
        assert is_foreign(acquisition)
        require_separate_records(acquisition)


def test_dpals_own_are_not_foreign_and_what_is_added_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in list(ACQUISITIONS.values()):
        assert not is_foreign(kind(classes=3))
    monkeypatch.setitem(ACQUISITIONS, "gini", Gini)
    assert is_foreign(Gini(classes=3))


def test_no_other_record_is_in_reach_of_foreign_code() -> None:
    """Without the check: code that takes whatever it can get still scores every record as if it were alone."""
    probabilities = np.random.default_rng(1).dirichlet(np.ones(3), 40)

    class Greedy(Entropy):
        seen: ClassVar[list[Array]] = []

        def _scores(self, probabilities: Array) -> Array:
            base = probabilities
            while base.base is not None:
                base = np.asarray(base.base)
            self.seen.append(base)
            scores = super()._scores(base.reshape(-1, 3))
            return super()._scores(probabilities) / max(scores.max(), 1e-9)

    alone = scores_by_record(Greedy(classes=3), probabilities)
    assert all(seen.size == 3 for seen in Greedy.seen)
    assert alone.tolist() == [1.0] * 40


def test_a_copy_of_its_own_for_every_record() -> None:
    @dataclass(kw_only=True, frozen=True)
    class Keeping(Entropy):
        kept: list[float] = field(default_factory=list)

        def _scores(self, probabilities: Array) -> Array:
            self.kept.append(1.0)
            return np.full(len(probabilities), 1 / len(self.kept))

    acquisition = Keeping(classes=2)
    assert scores_by_record(acquisition, np.full((5, 2), 0.5)).tolist() == [1.0] * 5
    assert acquisition.kept == []


def test_one_that_cannot_be_copied_is_refused_rather_than_scored_0() -> None:
    class Locked(Entropy):
        def __deepcopy__(self, memo: object) -> "Locked":
            raise TypeError

    with pytest.raises(InvalidArgument, match="copies well"):
        require_separate_records(Locked(classes=2))


def test_scores_by_record_are_those_of_a_batch_and_fast_enough() -> None:
    rng = np.random.default_rng(2)
    many = rng.dirichlet(np.ones(10), 20_000)
    started = time.monotonic()
    found = scores_by_record(Gini(classes=10), many)
    assert time.monotonic() - started < 30
    assert np.array_equal(found, Gini(classes=10).scores(many))
    passes = rng.dirichlet(np.ones(4), (3, 50))
    spread = Spread(classes=4, number_of_passes=3)
    assert np.array_equal(scores_by_record(spread, passes), spread.scores(passes))
    assert np.array_equal(scores_by_record(Entropy(classes=10), many), Entropy(classes=10).scores(many))


def test_a_record_that_foreign_code_cannot_score_scores_lowest() -> None:
    class Fragile(Entropy):
        def scores(self, probabilities: NDArray[np.floating]) -> Array:
            if probabilities[0, 0] > 0.9:
                raise ZeroDivisionError
            return np.full(len(probabilities), np.inf if probabilities[0, 0] < 0.1 else 7.0)

    rows = np.asarray([[0.95, 0.05], [0.05, 0.95], [0.5, 0.5]])
    assert scores_by_record(Fragile(classes=2), rows).tolist() == [0.0, 0.0, 1.0]


class Margin(Entropy):
    """Scaled by the largest score of the pool."""

    def _scores(self, probabilities: Array) -> Array:
        found = super()._scores(probabilities)
        return found / found.max() if len(found) > 1 else found


def test_a_campaign_refuses_mixing_when_it_is_made_and_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MixesRecords, match="Margin"):
        linear_campaign(tmp_path / "c", acquisition=Margin(classes=2))
    assert not (tmp_path / "c").exists()
    linear_campaign(tmp_path / "c", acquisition=Gini(classes=2))
    # The code was changed since.
    monkeypatch.setattr(Gini, "_scores", lambda self, probabilities: MIXING["rank"](probabilities[:, 0]))
    with pytest.raises(MixesRecords, match="Gini"):
        Campaign.open(tmp_path / "c", pool=linear_pool(), model=linear_model(), acquisition=Gini(classes=2))


def test_a_campaign_with_foreign_code_runs_and_names_it(tmp_path: Path) -> None:
    class Head(nn.Linear):
        pass

    torch.manual_seed(3)
    campaign = linear_campaign(tmp_path / "c", acquisition=Gini(classes=2, power=3.0), model=nn.Sequential(Head(4, 2)))
    created = campaign.state().created
    gini = f"{__name__}:Gini"
    assert created.foreign_code == (gini, f"{__name__}:{Head.__qualname__}")
    assert created.acquisition == gini
    again: dict[str, Any] = {"pool": linear_pool(), "model": nn.Sequential(Head(4, 2)), "oracle": "simulated"}
    # By its import path, since this module can be imported.
    assert Campaign.open(tmp_path / "c", **again).parts.acquisition == Gini(classes=2, power=3.0)
    with pytest.raises(InvalidArgument, match="as it was planned"):
        Campaign.open(tmp_path / "c", **again, acquisition=Entropy(classes=2))
    with pytest.raises(InvalidArgument, match=r"options of Gini is {'power': 2\.0}.*{'power': 3\.0}"):
        Campaign.open(tmp_path / "c", **again, acquisition=Gini(classes=2))
    opened = Campaign.open(tmp_path / "c", **again, acquisition=Gini(classes=2, power=3.0))
    assert opened.run().stage == "finished"
    assert opened.verify().holds
    store = Store(tmp_path / "c", read_only=True)
    try:
        assert store.recorded()[0].fact == created
    finally:
        store.close()


def test_a_subclass_is_not_taken_for_what_it_inherits_the_name_of(tmp_path: Path) -> None:
    class Cautious(Entropy):
        """Called entropy, as its base."""

    linear_campaign(tmp_path / "c", acquisition=Cautious(classes=2))
    with pytest.raises(InvalidArgument, match="given again"):
        Campaign.open(tmp_path / "c", pool=linear_pool(), model=linear_model())


@pytest.mark.parametrize("given", [lambda probabilities: probabilities[:, 0], Gini, 3])
def test_what_is_not_an_acquisition_function_is_explained(tmp_path: Path, given: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"acquisition is .*entropy.*subclass of dpal\.selection\.acquisition"):
        linear_campaign(tmp_path / "c", acquisition=given)
    linear_campaign(tmp_path / "c")
    with pytest.raises(InvalidArgument, match="subclass of"):
        Campaign.open(tmp_path / "c", pool=linear_pool(), model=linear_model(), acquisition=given)


def test_one_for_other_classes_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"classes=3.*classes=2.*as the pool has"):
        linear_campaign(tmp_path / "c", acquisition=Entropy(classes=3))


def test_fields_that_no_configuration_can_hold_are_named(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Weighted(Entropy):
        weights: object = None

    with pytest.raises(InvalidArgument, match=r"fields of .*Weighted.*weights.*numbers, texts"):
        linear_campaign(tmp_path / "c", acquisition=Weighted(classes=2, weights=np.ones(2)))
