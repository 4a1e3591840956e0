"""Units in a campaign: what is chosen, drawn and scored, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from small_campaigns import linear_campaign, linear_held_out, linear_model, linear_opened, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.campaign_units import CampaignUnits
from dpal.data import Pool, with_units
from dpal.data.units import EMPTY
from dpal.errors import BadData, InvalidArgument, LabelsRefused, RecordsChanged
from dpal.training.prediction import BATCH_SIZE

# Patients 0 to 9 have three images each, of which two are used, the others one.
RECORDS, PATIENTS, USED = 48, 28, 2


def patient_of(record_id: str) -> str:
    number = int(record_id[1:])
    return f"p{number // 3 if number < 30 else number}"


def patients(*, one_label: bool = False) -> Pool:
    return with_units(linear_pool(RECORDS), patient_of, name="patient", records=USED, one_label=one_label)


def plan(**changed: object):
    return linear_plan(PATIENTS, unit="patient", **changed)


def campaign(folder: Path, **options: object) -> Campaign:
    return linear_campaign(folder, patients(), **({"plan": plan()} | options))


def units_with(table: list[list[int]]) -> CampaignUnits:
    return CampaignUnits(
        names=np.array([f"u{unit}" for unit in range(len(table))]), table=np.array(table), are_named=True
    )


def test_a_campaign_counts_patients_and_asks_for_their_first_records(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c")
    status = made.run()
    assert (status.pool_size, status.unit) == (PATIENTS, "patient")
    state = made.state()
    assert [len(chosen) for chosen in state.asked] == [8, 5, 4]
    for chosen, records in zip(state.asked, state.groups, strict=True):
        expected = {f"r{3 * int(name[1:]) + seat:02d}" for name in chosen if int(name[1:]) < 10 for seat in range(USED)}
        expected |= {f"r{int(name[1:])}" for name in chosen if int(name[1:]) >= 10}
        assert set(records) == expected
    assert made.verify().holds


def test_a_selection_with_scores_chooses_whole_patients(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", plan=plan(selections="released", selection="laplace"))
    status = made.run()
    assert status.asked == 17
    assert sum(len(records) for records in made.state().groups) > 17
    assert made.verify().holds


def test_reopening_needs_the_same_units(tmp_path: Path) -> None:
    campaign(tmp_path / "c")
    linear_opened(tmp_path / "c", patients()).run()
    with pytest.raises(RecordsChanged, match=r"names no units.*created with units"):
        linear_opened(tmp_path / "c", linear_pool(RECORDS))
    moved = with_units(linear_pool(RECORDS), lambda name: "p0" if name == "r47" else patient_of(name), name="patient")
    with pytest.raises(RecordsChanged, match=r"1 record\(s\) belong to another patient.*'r47'"):
        linear_opened(tmp_path / "c", moved)
    linear_campaign(tmp_path / "plain")
    with pytest.raises(RecordsChanged, match=r"names units.*without them"):
        linear_opened(tmp_path / "plain", with_units(linear_pool(), lambda name: name[:2]))


def test_a_plan_must_be_for_the_units_of_the_pool(tmp_path: Path) -> None:
    for wrong in (linear_plan(PATIENTS), linear_plan(PATIENTS, unit="customer")):
        with pytest.raises(InvalidArgument, match="the plan's unit"):
            linear_campaign(tmp_path / "c", patients(), plan=wrong)
    with pytest.raises(InvalidArgument, match="the plan's pool size"):
        linear_campaign(tmp_path / "c", patients(), plan=linear_plan(RECORDS, unit="patient"))
    with pytest.raises(InvalidArgument, match="the plan's unit"):
        linear_campaign(tmp_path / "c", plan=linear_plan(unit="patient"))


def test_a_held_out_set_shares_nobody(tmp_path: Path) -> None:
    held_out = linear_held_out()
    with pytest.raises(BadData, match=r"does not say which patient.*with_units"):
        campaign(tmp_path / "c", evaluation=held_out, evaluation_is_public=True)
    shared = with_units(held_out, lambda name: "p3" if name == "h00" else name, name="patient")
    with pytest.raises(BadData, match=r"shares 1 unit\(s\) \(patient\) with the pool: 'p3'"):
        campaign(tmp_path / "c", evaluation=shared, evaluation_is_public=True)
    separate = with_units(held_out, lambda name: name, name="patient")
    made = campaign(tmp_path / "c", evaluation=separate, evaluation_is_public=True)
    made.run(go_on=True)
    with pytest.raises(BadData, match="shares 1 unit"):
        linear_opened(tmp_path / "c", patients(), evaluation=shared, evaluation_is_public=True)
    # Earlier models were trained on a patient who withdrew, even if nothing of theirs is left in the data.
    made.withdraw(units=["p3"], reason="consent withdrawn")
    without = patients().take([name for name in patients().ids.tolist() if patient_of(name) != "p3"])
    linear_opened(tmp_path / "c", without, evaluation=separate, evaluation_is_public=True)
    with pytest.raises(BadData, match="shares 1 unit"):
        linear_opened(tmp_path / "c", without, evaluation=shared, evaluation_is_public=True)


def test_an_initial_set_is_of_whole_patients_and_their_given_records(tmp_path: Path) -> None:
    # Patient 0 has two given records, of which one takes a seat; seven others have one each.
    given = ["r00", "r02", *(f"r{number}" for number in range(30, 37))]
    made = campaign(tmp_path / "c", initial=given)
    made.run()
    assert set(made.state().groups[0]) == {"r00", *given[2:]}
    assert len(made.state().asked[0]) == 8
    with pytest.raises(InvalidArgument, match=r"initial units \(patient\).*9"):
        campaign(tmp_path / "d", initial=[*given, "r40"])


def test_one_label_for_all_records_of_a_patient(tmp_path: Path) -> None:
    # 18 patients have one record: among 19, somebody has more.
    made = Campaign.create(
        tmp_path / "c", plan=plan(initial_size=19), pool=patients(one_label=True), model=linear_model(), oracle="files"
    )
    made.run()
    state = made.state()
    several = next(name for name in state.asked[0] if sum(patient_of(record) == name for record in state.groups[0]) > 1)
    records = [record for record in state.groups[0] if patient_of(record) == several]
    counts = made.add_answers({several: "yes"}, source="a doctor")
    assert counts["new"] == len(records) == USED
    assert {made.state().answers[record] for record in records} == {1}
    # A correction is of the patient too, and a record may be answered by itself.
    assert made.add_answers({several: "no"}, source="a doctor")["corrected"] == USED
    assert made.add_answers({records[0]: "skip"}, source="a doctor")["corrected"] == 1
    with pytest.raises(LabelsRefused, match="the id 'p99' was not asked for"):
        made.add_answers({"p99": "yes"}, source="a doctor")


def test_without_one_label_a_patients_name_is_no_record(tmp_path: Path) -> None:
    made = Campaign.create(tmp_path / "c", plan=plan(), pool=patients(), model=linear_model(), oracle="files")
    made.run()
    with pytest.raises(LabelsRefused, match="was not asked for"):
        made.add_answers({made.state().asked[0][0]: "yes"}, source="a doctor")


def test_withdrawing_a_patient_takes_all_records(tmp_path: Path) -> None:
    made = Campaign.create(tmp_path / "c", plan=plan(), pool=patients(), model=linear_model(), oracle="simulated")
    assert made.withdraw(units="p0") == 3
    made.withdraw("r03")
    made.run()
    chosen = {name for group in made.state().asked for name in group}
    assert "p0" not in chosen
    assert not {"r00", "r01", "r02", "r03"} & {name for group in made.state().groups for name in group}
    with pytest.raises(BadData, match=r"1 unit\(s\) are not in the campaign"):
        made.withdraw(units=["p99"])
    plain = linear_campaign(tmp_path / "plain")
    with pytest.raises(BadData, match="names no units"):
        plain.withdraw(units=["p0"])


def test_members_are_blanks_where_nobody_labelled_anything(tmp_path: Path) -> None:
    made = Campaign.create(tmp_path / "c", plan=plan(), pool=patients(), model=linear_model(), oracle="files")
    made.run()
    state = made.state()
    first, *others = state.asked[0]
    answers = {record: "skip" if patient_of(record) == first else "yes" for record in state.groups[0]}
    made.add_answers(answers, source="a doctor")
    state, pool = made.state(), made.parts.pool
    units = made.runner.units
    members = units.members(state, 0, pool)
    assert members[0] == -1
    assert [units.names[member] for member in members[1:]] == others
    trained = units.trained(state, pool)
    labelled = {record for record in state.groups[0] if patient_of(record) != first}
    assert {str(pool.ids[position]) for position in trained[trained != EMPTY]} == labelled


def test_everyones_place_in_a_scoring_batch_is_fixed() -> None:
    table = [[unit, EMPTY if unit % 5 else 1000 + unit, EMPTY] for unit in range(BATCH_SIZE + 7)]
    positions, places = units_with(table).scoring_order()
    # A whole batch for every seat that anyone takes there, and none for the third seat.
    assert len(positions) == 4 * BATCH_SIZE
    for seat, unit in ((0, 0), (0, 511), (0, 512), (1, 0), (1, 515)):
        assert positions[places[seat, unit]] == table[unit][seat]
        assert places[seat, unit] % BATCH_SIZE == unit % BATCH_SIZE
    assert (places[2] == EMPTY).all()
    # An empty seat holds a record of its own unit, so that nobody else's batch changes with it.
    assert positions[places[1, 0] + 1] == table[1][0]
    # Someone else's second record changes nobody's place or neighbours but in the seats of their own.
    changed = [list(row) for row in table]
    changed[3][1] = 2000
    other, other_places = units_with(changed).scoring_order()
    differs = np.flatnonzero(other != positions)
    assert (differs % BATCH_SIZE == 3).all()
    assert (other_places == places)[:, [unit for unit in range(len(table)) if unit != 3]].all()


def test_a_unit_without_records_is_not_offered() -> None:
    units = units_with([[0, 1], [EMPTY, EMPTY], [2, EMPTY]])
    assert units.choosable().tolist() == [0, 2]
    assert units.choosable({"u0"}).tolist() == [2]
    positions, places = units_with([[EMPTY, EMPTY]]).scoring_order()
    assert len(positions) == 0
    assert units_with([[EMPTY, EMPTY]]).scores(np.empty(0), places).tolist() == [0.0]
