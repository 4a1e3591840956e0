"""Selections of campaigns on large pools: the same whom a pool in memory gives, and the same again after a death."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from large_campaigns import ROWS, config, create
from large_pools import CLASSES, head, write_pool

from dpal.campaign import fault_points, large_choosing, large_selection
from dpal.campaign.campaign import Campaign
from dpal.campaign.config import Evaluation
from dpal.campaign.facts import Resumed, Scored, Selected, Withdrawn
from dpal.campaign.layout import SCORES
from dpal.data import from_arrays, from_parquet
from dpal.errors import BadData, DamagedCampaign, InvalidArgument, RecordsChanged
from dpal.selection import CutSelection


def other_model(scorer):
    return replace(scorer, predictor=replace(scorer.predictor, model=head().eval()))


class Died(Exception):
    pass


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("large") / "pool", ROWS, row_group=500)


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory, pool: Path) -> Path:
    folder = tmp_path_factory.mktemp("made") / "campaign"
    create(folder, pool)
    return folder


@pytest.fixture
def folder(created: Path, tmp_path: Path) -> Path:
    return shutil.copytree(created, tmp_path / "campaign")


def selected(campaign: Campaign) -> list[tuple[set[str], float | None]]:
    facts = [entry.fact for entry in campaign.reader.recorded if isinstance(entry.fact, Selected)]
    return [({*fact.to_label, *fact.retired}, fact.threshold) for fact in facts]


def test_a_campaign_selects_what_one_on_arrays_selects(folder: Path, pool: Path, tmp_path: Path) -> None:
    large = Campaign.open(folder)
    large.run()
    assert large.status().stage == "finished" and large.verify().holds
    table = pq.read_table(pool)
    arrays = from_arrays(
        np.asarray(table.column("features").to_pylist(), dtype=np.float32),
        labels=table.column("label").to_numpy(),
        ids=table.column("id").to_pylist(),
        classes=CLASSES,
        name="arrays",
    )
    plain = Campaign.create(
        tmp_path / "plain", pool=arrays, model=head, plan=large.plan, oracle="simulated", seed=5, not_private=True
    )
    plain.run()
    assert selected(plain) == selected(large) and len(selected(plain)) == 2
    assert len(selected(plain)[1][0]) > 20


def test_scores_are_recorded_before_the_choice_and_only_their_fingerprint_stays(folder: Path) -> None:
    campaign = Campaign.open(folder)
    campaign.run()
    kinds = [entry.fact.kind for entry in campaign.reader.recorded]
    # The initial set is drawn without scores.
    assert kinds.count("scored") == 1
    place = kinds.index("scored")
    assert kinds[place - 1] == "charged-selection" and kinds[place + 1] == "selected"
    assert not (folder / SCORES).exists()
    with pytest.raises(InvalidArgument, match="the scores of a large pool are deleted"):
        campaign.simulated_scores(1)


@pytest.mark.parametrize("point", ["select.scored", "select.chosen"])
def test_a_selection_that_died_is_repeated_with_the_same_scores(
    folder: Path, point: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    undisturbed = Campaign.open(Path(shutil.copytree(folder, tmp_path / "undisturbed")))
    undisturbed.run()
    hits: list[str] = []

    def dying(name: str) -> None:
        if name == point:
            hits.append(name)
            if len(hits) == 2:
                raise Died

    with monkeypatch.context() as patched:
        for module in (fault_points, large_selection.fault_points):
            patched.setattr(module, "reached", dying)
        with pytest.raises(Died):
            Campaign.open(folder).run()
    campaign = Campaign.open(folder)
    assert campaign.state().scored is not None
    campaign.run()
    facts = [entry.fact for entry in campaign.reader.recorded]
    assert sum(isinstance(fact, Resumed) for fact in facts) == 1
    assert sum(isinstance(fact, Scored) for fact in facts) == 1
    assert selected(campaign) == selected(undisturbed) and campaign.verify().holds


def test_a_repeated_step_with_other_scores_chooses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(name: str) -> None:
        if name == "select.chosen" and Campaign(folder).state().scored is not None:
            raise Died

    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reached", dying)
        with pytest.raises(Died):
            Campaign.open(folder).run()
    # Another machine, on which the last bits are others.
    with monkeypatch.context() as patched:
        true = large_choosing.scorer_of
        patched.setattr(large_choosing, "scorer_of", lambda *given: other_model(true(*given)))
        with pytest.raises(DamagedCampaign, match="scored before, with other scores"):
            Campaign.open(folder).run()
    # A withdrawal makes it another step, with a key and scores of its own.
    campaign = Campaign.open(folder)
    other = next(iter(selected(campaign)[0][0]))
    assert campaign.withdraw([other]) == 1 and campaign.state().scored is None
    campaign.run()
    facts = [entry.fact for entry in campaign.reader.recorded]
    assert sum(isinstance(fact, Scored) for fact in facts) == 2 and any(isinstance(f, Withdrawn) for f in facts)
    assert campaign.verify().holds


def test_a_row_group_that_changed_stops_the_selection(folder: Path, pool: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(pool, tmp_path / "pool"))
    moved = Campaign.open(folder).open_data()
    text = (folder / "campaign.yaml").read_text()
    (folder / "campaign.yaml").write_text(text.replace(str(pool), str(copy)))
    write_pool(tmp_path / "other", ROWS, row_group=500, seed=1)
    (copy / "part-0001.parquet").write_bytes((tmp_path / "other" / "part-0001.parquet").read_bytes())
    campaign = Campaign.open(folder)
    with pytest.raises(RecordsChanged, match=r"Row group \d of .*part-0001.parquet is not as it was"):
        campaign.run()
    assert campaign.state().selected == () and not (folder / SCORES).exists()
    (copy / "part-0001.parquet").write_bytes((pool / "part-0001.parquet").read_bytes())
    Campaign.open(folder).run()
    assert Campaign(folder).state().finished and moved.unit_count == ROWS


def test_other_row_groups_are_refused_before_anything_is_charged(
    folder: Path, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write_pool(tmp_path / "other", ROWS, row_group=400)
    text = (folder / "campaign.yaml").read_text()
    (folder / "campaign.yaml").write_text(text.replace(str(pool), str(other)))
    with pytest.raises(RecordsChanged, match=r"(?s)row group 0 of part-0000.*Nothing was charged"):
        Campaign.open(folder).run()
    assert Campaign(folder).state().charges == ()
    # And where a step is charged already, this is said.
    (folder / "campaign.yaml").write_text(text)

    def dying(name: str) -> None:
        if name == "select.charged":
            raise Died

    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reached", dying)
        with pytest.raises(Died):
            Campaign.open(folder).run()
    (folder / "campaign.yaml").write_text(text.replace(str(pool), str(other)))
    with pytest.raises(RecordsChanged, match=r"(?s)row group 0 of part-0000.*stays charged"):
        Campaign.open(folder).run()
    assert len(Campaign(folder).state().charges) == 1


def test_whoever_is_withdrawn_is_never_chosen_and_must_be_in_the_pool(folder: Path, pool: Path) -> None:
    campaign = Campaign.open(folder)
    gone = pq.read_table(pool).column("id").to_pylist()[:2500]
    with pytest.raises(BadData, match="are not in the campaign"):
        campaign.withdraw(["nobody", gone[0]])
    assert campaign.withdraw(gone) == 2500
    campaign = Campaign.open(folder)
    campaign.run()
    assert not set().union(*(chosen for chosen, _ in selected(campaign))) & set(gone)
    assert len(selected(campaign)[0][0]) == 60 and campaign.verify().holds


EVALUATION = {"source": "parquet", "options": {"path": "pool", "features": "features", "classes": 4}, "is_public": True}


class OwnCut(CutSelection):
    """Somebody's own, with another choice."""

    def _choose(self, grid, randomness):
        return super()._choose(grid, randomness)


def test_a_choice_of_ones_own_is_refused_where_only_counts_would_be_used(pool: Path) -> None:
    sizes = {"query_size": 60, "unlabelled": ROWS - 60, "cut_epsilon": 0.5, "wanted": 50}
    large = from_parquet(str(pool), features="features", classes=CLASSES)
    parts = SimpleNamespace(encoder=None)

    def plan(selection, mean=None):
        return SimpleNamespace(selections=(selection,), setting=SimpleNamespace(mean=mean))

    large_choosing.require_large(plan(CutSelection(**sizes)), large, parts, [])
    with pytest.raises(InvalidArgument, match="a choice of its own"):
        large_choosing.require_large(plan(OwnCut(**sizes)), large, parts, [])
    with pytest.raises(InvalidArgument, match="mean"):
        large_choosing.require_large(plan(CutSelection(**sizes), mean=1.0), large, parts, [])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"plan": {"selection": "laplace", "selections": "released"}}, "cut, threshold or random"),
        ({"options": {"label": None}}, "name the column of labels"),
        ({"evaluation": EVALUATION}, "evaluation.source is 'parquet'"),
        ({"model": {"name": "features", "options": {"encoder": "tiny"}}}, "encoder"),
    ],
)
def test_what_needs_everything_in_memory_is_refused(pool: Path, tmp_path: Path, changed: dict, message: str) -> None:
    if "evaluation" in changed:
        options = {**EVALUATION["options"], "path": str(pool)}
        changed = {"evaluation": {**EVALUATION, "options": options}}
    with pytest.raises(InvalidArgument, match=message):
        create(tmp_path / "campaign", pool, **changed)
    assert not (tmp_path / "campaign").exists()
    assert config(pool).data is not None


def held_out_files(folder: Path, rows: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    np.save(folder / "rows.npy", rows)
    np.save(folder / "labels.npy", np.arange(len(rows)) % CLASSES)


def test_the_held_out_set_is_the_one_that_was_compared_with_the_whole_pool(pool: Path, tmp_path: Path) -> None:
    public = np.random.default_rng(4).standard_normal((40, 16)).astype(np.float32)
    held_out_files(tmp_path / "held-out", public)
    options = {"file": str(tmp_path / "held-out/rows.npy"), "labels": str(tmp_path / "held-out/labels.npy")}
    evaluation = {"source": "numpy", "options": {**options, "classes": CLASSES}, "is_public": True}
    create(tmp_path / "with", pool, evaluation=evaluation)
    create(tmp_path / "without", pool)
    Campaign.open(tmp_path / "with")
    # Private records, none of which was asked for.
    private = np.asarray(pq.read_table(pool).column("features").to_pylist()[:40], dtype=np.float32)
    held_out_files(tmp_path / "held-out", private)
    with pytest.raises(BadData, match="is not the one that the campaign was created with"):
        Campaign.open(tmp_path / "with")
    settings = Campaign(tmp_path / "without").config.model_copy(update={"evaluation": Evaluation(**evaluation)})
    (tmp_path / "without/campaign.yaml").write_text(settings.to_yaml())
    with pytest.raises(BadData, match="was created without a held-out set"):
        Campaign.open(tmp_path / "without")
    held_out_files(tmp_path / "held-out", public)
    campaign = Campaign.open(tmp_path / "with")
    campaign.run()
    assert campaign.state().evaluated and campaign.verify().holds
