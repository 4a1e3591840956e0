"""A withdrawn record takes part in nothing from then on; the campaign goes on, and what was charged stands."""

import csv
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_campaigns import linear_campaign, linear_opened, linear_plan, linear_pool

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.files import draft_of
from dpal.campaign.store import Store
from dpal.data import Pool, from_arrays
from dpal.errors import BadData, DamagedCampaign, RecordsChanged
from dpal.reports.campaign_data import report_data
from dpal.reports.certificate import certificate_of


class Died(BaseException):
    """The process, as far as one process can show it."""


@contextmanager
def dying_at(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    def reached(here: str) -> None:
        if here == point:
            raise Died

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(fault_points, "reached", reached)
        yield


def without(*ids: str) -> Pool:
    pool = linear_pool()
    return pool.take([name for name in pool.ids.tolist() if name not in ids])


def seal_of(folder: Path) -> tuple[int, bytes]:
    store = Store(folder, read_only=True)
    try:
        (number,) = store.keys.charges()
        return number, store.keys.read(number)
    finally:
        store.close()


def test_a_withdrawn_record_takes_part_in_nothing(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c", oracle="files")
    campaign.run()
    asked = campaign.state().groups[0]
    unasked = next(name for name in linear_pool().ids.tolist() if name not in asked)
    gone = (asked[0], unasked)
    assert campaign.withdraw(gone, reason="consent withdrawn") == 2
    assert campaign.withdraw(gone) == 0
    last = campaign.state().last
    assert campaign.withdraw([asked[0]]) == 0 and campaign.state().last == last
    # Nobody waits for its label, nobody is shown it, and an answer that comes all the same is ignored with a word.
    assert campaign.status().internal.waiting_for_labels == len(asked) - 1
    assert campaign.export_labels(tmp_path / "out", linear_pool()) == len(asked) - 1
    with (tmp_path / "out/labels.csv").open(newline="", encoding="utf-8-sig") as lines:
        assert asked[0] not in {row[0] for row in csv.reader(lines)}
    table = tmp_path / "labels.csv"
    table.write_text("id,label\n" + "".join(f"{name},yes\n" for name in asked[1:]) + f"{asked[0]},nonsense\n")
    counts = campaign.import_labels(table, without(*gone))
    assert counts == {"new": len(asked) - 1, "corrected": 0, "unchanged": 0, "withdrawn": 1}
    # The records are gone from the data, and the campaign goes on to its end.
    again = linear_opened(tmp_path / "c", without(*gone), oracle="simulated")
    assert again.run().stage == "finished"
    state = again.state()
    assert state.withdrawn == set(gone)
    assert not {name for each in state.selected[1:] for name in (*each.to_label, *each.retired)} & set(gone)
    assert asked[0] not in state.answers
    assert all(name not in state.trainable(group) for group in range(len(state.groups)) for name in gone)
    assert again.verify().holds
    again.export_model(tmp_path / "model.safetensors")


def test_an_answered_record_is_not_trained_on_after_its_withdrawal(tmp_path: Path) -> None:
    """Its label was there; the model is the one of a pool that never had it labelled."""
    weights = []
    for name, answer in (("withdrawn", "yes"), ("never answered", "skip")):
        campaign = linear_campaign(tmp_path / name, oracle="files", seed=3, not_private=True)
        campaign.run()
        (tmp_path / "all.csv").write_text(
            "id,label\n" + "".join(f"{each},{answer if not n else 'no'}\n" for n, each in enumerate(asked_in(campaign)))
        )
        campaign.import_labels(tmp_path / "all.csv", linear_pool())
        if name == "withdrawn":
            campaign.withdraw(asked_in(campaign)[0])
            broken = np.array(linear_pool().records.read(np.arange(24)))
            # Its row stays in place, and what it holds no longer matters.
            broken[linear_pool().positions([asked_in(campaign)[0]])] = np.nan
            campaign = linear_opened(
                tmp_path / name, replace(linear_pool(), records=from_arrays(broken, classes=2).records)
            )
        campaign.run()
        weights.append(campaign.state().trained[0].export_sha256)
    assert weights[0] == weights[1]


def asked_in(campaign: Campaign) -> tuple[str, ...]:
    return campaign.state().groups[0]


def test_unknown_ids_are_all_listed_and_nothing_is_withdrawn(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    with pytest.raises(BadData, match=r"2 id.*'nobody', 'r99'.*No record was withdrawn"):
        campaign.withdraw(["r01", "nobody", "r99"])
    assert campaign.state().withdrawn == frozenset()
    with pytest.raises(RecordsChanged, match="'r01'"):
        linear_opened(tmp_path / "c", without("r01"))
    assert Campaign(tmp_path / "c").withdraw("r01") == 1
    assert linear_opened(tmp_path / "c", without("r01")).run().stage == "finished"


def test_row_numbers_keep_their_rows(tmp_path: Path) -> None:
    values = np.array(linear_pool().records.read(np.arange(24)))
    rows = from_arrays(values, classes=["no", "yes"], labels=linear_pool().labels)
    linear_campaign(tmp_path / "c", pool=rows)
    Campaign(tmp_path / "c").withdraw("5")
    kept = np.arange(24) != 5
    shorter = from_arrays(values[kept], classes=["no", "yes"], labels=linear_pool().labels[kept])
    with pytest.raises(RecordsChanged, match="row numbers"):
        linear_opened(tmp_path / "c", shorter)
    emptied = values.copy()
    emptied[5] = 0
    same = from_arrays(emptied, classes=["no", "yes"], labels=linear_pool().labels)
    assert linear_opened(tmp_path / "c", same).run().stage == "finished"


@pytest.mark.parametrize("point", ["train.charged", "train.step", "train.checkpoint-drafted"])
@pytest.mark.parametrize("seed", [3, None])
def test_a_charged_step_gets_a_new_key_and_sees_the_withdrawal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, seed: int | None
) -> None:
    campaign = linear_campaign(tmp_path / "c", seed=seed, not_private=seed is not None)
    with dying_at(monkeypatch, point):
        campaign.run()
    charge, key = seal_of(tmp_path / "c")
    draft = draft_of(tmp_path / "c/checkpoints/phase-1.safetensors")
    first = draft.read_bytes() if draft.exists() else b""
    gone = asked_in(campaign)[0]
    campaign.withdraw(gone)
    number, fresh = seal_of(tmp_path / "c")
    assert number == campaign.state().sealed_with == campaign.state().last != charge
    assert fresh != key
    assert Campaign(tmp_path / "c").verify().holds
    # The old key is nowhere in the folder.
    assert not any(path.is_file() and key in path.read_bytes() for path in (tmp_path / "c").rglob("*"))
    twin = Path(shutil.copytree(tmp_path / "c", tmp_path / "twin"))
    for folder in (tmp_path / "c", twin):
        assert linear_opened(folder, without(gone)).run().stage == "finished"
        assert Campaign(folder).verify().holds
    states = [Campaign(folder).state() for folder in (tmp_path / "c", twin)]
    # Only one model came of the charge, and not the one that was begun with the withdrawn record.
    assert states[0].trained[0].sha256 == states[1].trained[0].sha256
    assert states[0].charges[1][0] == states[0].trained[0].charge == charge
    assert (tmp_path / "c/checkpoints/phase-1.safetensors").read_bytes() != first
    assert Store(tmp_path / "c", read_only=True).keys.charges() == []


def test_a_charged_selection_sees_the_withdrawal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = linear_campaign(tmp_path / "c", seed=3, not_private=True)
    with dying_at(monkeypatch, "select.chosen"):
        campaign.run()
    gone = linear_pool().ids.tolist()[:6]
    campaign.withdraw(gone)
    assert campaign.run().stage == "finished"
    state = campaign.state()
    assert not set(gone) & state.taken()
    assert len(state.groups[0]) == 8
    assert campaign.verify().holds
    # What a simulation shows of its scores is what the step saw.
    scores, chosen = campaign.simulated_scores(1)
    assert len(scores) == len(chosen) == 24 - 6 - 8
    assert chosen.sum() == len(state.selected[1].to_label) + len(state.selected[1].retired)


@pytest.mark.parametrize("point", ["train.produced", "train.checkpoint-written"])
def test_a_model_that_is_made_stays_the_one_of_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    campaign = linear_campaign(tmp_path / "c")
    with dying_at(monkeypatch, point):
        campaign.run()
    produced = campaign.state().produced
    assert produced is not None
    key = seal_of(tmp_path / "c")
    campaign.withdraw(asked_in(campaign)[0])
    assert seal_of(tmp_path / "c") == key
    assert Campaign(tmp_path / "c").verify().holds
    again = linear_opened(tmp_path / "c", without(asked_in(campaign)[0]))
    assert again.run().stage == "finished"
    assert again.state().trained[0].sha256 == produced.sha256
    assert again.state().resumed == 0
    assert again.verify().holds


@pytest.mark.parametrize("point", ["train.produced", "train.checkpoint-written"])
def test_a_model_that_is_made_and_lost_is_never_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    campaign = linear_campaign(tmp_path / "c")
    with dying_at(monkeypatch, point):
        campaign.run()
    path = tmp_path / "c/checkpoints/phase-1.safetensors"
    place = draft_of(path) if point == "train.produced" else path
    content = place.read_bytes()
    place.rename(tmp_path / "elsewhere")
    last = campaign.state().last
    for harm in (lambda: None, lambda: place.write_bytes(content[:-8] + bytes(8))):
        harm()
        with pytest.raises(DamagedCampaign, match="second model on one charge"):
            linear_opened(tmp_path / "c").run()
        assert campaign.state().last == last
        assert not Campaign(tmp_path / "c").verify().holds
    (tmp_path / "elsewhere").replace(place)
    assert linear_opened(tmp_path / "c").run().stage == "finished"
    assert path.read_bytes() == content
    assert Campaign(tmp_path / "c").verify().holds


@pytest.mark.parametrize("selection", ["threshold", "laplace", "exponential", "random"])
def test_selections_work_on_fewer_records_than_were_planned(tmp_path: Path, selection: str) -> None:
    """So many are withdrawn that the last query cannot be filled."""
    campaign = linear_campaign(tmp_path / "c", plan=linear_plan(selection=selection))
    campaign.withdraw([f"r{number:02d}" for number in range(9)])
    assert campaign.run().stage == "finished"
    state = campaign.state()
    assert len(state.groups[0]) == 8
    assert all(name in linear_pool().ids for each in state.selected for name in (*each.to_label, *each.retired))
    assert campaign.verify().holds


def test_records_that_were_labelled_from_the_start_can_be_withdrawn(tmp_path: Path) -> None:
    initial = linear_pool().ids.tolist()[:8]
    campaign = linear_campaign(tmp_path / "c", initial=initial)
    campaign.withdraw(initial[:2])
    assert campaign.run().stage == "finished"
    assert list(campaign.state().groups[0]) == initial[2:]
    assert campaign.verify().holds


def test_how_many_were_withdrawn_stays_inside(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    campaign.withdraw(["r03", "r04"], reason="the patient said no")
    campaign.run()
    assert campaign.status().internal.withdrawn == 2
    public = json.dumps([report_data(tmp_path / "c", internal=False), certificate_of(tmp_path / "c")])
    assert '"withdrawn"' not in public and "said no" not in public and "r03" not in public
    assert "said no" not in repr(campaign.state()) and "r03" not in repr(campaign.state())


@pytest.mark.parametrize("count", [1, 17])
def test_withdrawals_before_the_initial_draw_leave_a_smaller_initial_set(tmp_path: Path, count: int) -> None:
    pool = linear_pool()
    campaign = linear_campaign(tmp_path / "c", plan=linear_plan(planner="no-al"))
    wanted = campaign.plan.groups[0].size
    campaign.withdraw(pool.ids[:count].tolist())
    assert campaign.run().stage == "finished"
    drawn = campaign.state().selected[0].to_label
    assert not set(drawn) & set(pool.ids[:count].tolist())
    assert len(drawn) == min(wanted, len(pool) - count) or len(drawn) < wanted
    assert campaign.verify().holds
