"""A rehearsal: the very plan on public records, simulated, with nothing left behind and nothing charged."""

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic_pictures import album

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import read_config
from dpal.campaign.filled_in import filled_in
from dpal.errors import DpalError, InvalidArgument, MissingData
from dpal.rehearsal.forecasts import mean_and_deviation, rehearse

CONFIG = """
data: {source: digits}
evaluation: {source: digits, options: {part: test}, is_public: true}
plan: {target_epsilon: 8, initial_size: 120, query_sizes: [180], batch_size: 64, epochs: EPOCHS, accountant: rdp}
model: {name: small-cnn}
training: {learning_rate: RATE, average: 0.9}
oracle: simulated
"""


def configuration(folder: Path, *, epochs: int = 5, rate: float = 8e-3) -> Path:
    file = folder / "c.yaml"
    file.write_text(CONFIG.replace("EPOCHS", str(epochs)).replace("RATE", str(rate)))
    return file


def test_the_forecast_has_each_phase_and_random_labels_next_to_it(tmp_path: Path) -> None:
    told: list[str] = []
    result = rehearse(configuration(tmp_path), runs=2, with_random=True, tell=told.append)
    own, random = result.forecasts
    assert (own.selection, len(own.phases), random.selection, len(random.phases)) == ("cut", 2, "random", 1)
    assert all(len(values) == 2 for phase in own.phases for values in phase.values())
    # Half of the 360 held-out digits; some share their content.
    assert 150 <= result.distinct_records <= 180
    assert (result.pool_size, result.labelling_budget, result.is_like_the_pool) == (1437, 300, True)
    assert own.final["accuracy"][0] > 0.3
    assert not result.is_at_chance
    assert json.loads(json.dumps(result.to_json()))["forecasts"][0]["target_epsilon"] == 8
    assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]
    assert "rehearsing ε = 8 with cut labels, run 2 of 2" in told


def test_several_epsilons_have_a_plan_each(tmp_path: Path) -> None:
    result = rehearse(configuration(tmp_path, epochs=2), epsilons=(1, 8), runs=1)
    assert [forecast.target_epsilon for forecast in result.forecasts] == [1, 8]
    assert not result.is_at_chance
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InvalidArgument, match="--epsilons"):
            rehearse(configuration(tmp_path), epsilons=(wrong,))


def test_another_epsilon_is_planned_as_init_would_plan_it(tmp_path: Path) -> None:
    """The noise of the private mean follows from ε: with that of another one there may be no plan, or a better one."""
    np.save(tmp_path / "images.npy", album(150, 16))
    (tmp_path / "c.yaml").write_text(
        "data: {source: numpy, options: {file: images.npy, classes: [a, b]}}\n"
        "plan: {target_epsilon: 8, labelling_budget: 60, phases: 1, accountant: rdp}\n"
    )
    made = filled_in(read_config(tmp_path / "c.yaml"), tmp_path, tell=lambda words: None)
    one = read_config(tmp_path / "c.yaml", ["plan.target_epsilon=1"])
    assert made.request_for(8.0) == made.request
    assert made.request_for(1.0) == filled_in(one, tmp_path, tell=lambda words: None).request
    assert made.request_for(1.0).mean_noise_multiplier != made.request.mean_noise_multiplier


def test_a_plan_that_teaches_nothing_is_at_chance(tmp_path: Path) -> None:
    result = rehearse(configuration(tmp_path, epochs=1, rate=1e-30), runs=1)
    assert result.is_at_chance
    assert result.forecasts[0].at_chance == 1


def test_a_campaign_is_rehearsed_with_its_recorded_plan_and_stays_as_it_is(tmp_path: Path) -> None:
    campaign = Campaign.from_config(tmp_path / "c", read_config(configuration(tmp_path, epochs=2)))
    before = {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir() if path.is_file()}
    result = rehearse(tmp_path / "c", runs=1)
    assert result.forecasts[0].target_epsilon == campaign.plan.setting.target_epsilon
    assert {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir() if path.is_file()} == before
    assert campaign.status().epsilon_spent == 0
    with pytest.raises(InvalidArgument, match="settings are recorded"):
        rehearse(tmp_path / "c", settings=["plan.epochs=3"])


def test_texts_without_a_held_out_set_are_rehearsed_on_synthetic_features(tmp_path: Path) -> None:
    rows = "".join(f"{number},the note number {number}\n" for number in range(300))
    (tmp_path / "notes.csv").write_text(f"case,note\n{rows}")
    (tmp_path / "c.yaml").write_text(
        "data: {source: table, options: {file: notes.csv, text: note, id_column: case, classes: [well, ill]}}\n"
        "plan: {target_epsilon: 8, labelling_budget: 200, accountant: rdp}\n"
    )
    result = rehearse(tmp_path / "c.yaml", runs=1)
    assert "synthetic features" in result.stand_in
    assert result.encoding_seconds > 0
    assert result.forecasts[0].final["accuracy"][0] > 0.55


def test_a_campaign_of_patients_is_rehearsed_on_patients(tmp_path: Path) -> None:
    """The held-out set names patients too, as it must; the pool has another number of them, and of records."""
    for name, records, each in (("pool", 90, 3), ("public", 40, 2)):
        np.save(tmp_path / f"{name}.npy", album(records, 16))
        np.save(tmp_path / f"{name}-labels.npy", np.arange(records) % 2)
        lines = "".join(f"{row},{name} {row // each}\n" for row in range(records))
        (tmp_path / f"{name}.csv").write_text(f"id,unit\n{lines}")
    section = "source: numpy, options: {file: NAME.npy, labels: NAME-labels.npy, classes: [a, b]}, UNIT"
    sections = {name: section.replace("NAME", name) for name in ("pool", "public")}
    (tmp_path / "c.yaml").write_text(
        f"data: {{{sections['pool'].replace('UNIT', 'unit: {file: pool.csv, name: patient, records: 2}')}}}\n"
        f"evaluation: {{{sections['public'].replace('UNIT', 'unit: {file: public.csv}')}, is_public: true}}\n"
        "plan: {target_epsilon: 8, labelling_budget: 20, phases: 1, epochs: 2, accountant: rdp}\n"
        "model: {name: small-cnn}\n"
    )
    result = rehearse(tmp_path / "c.yaml", runs=1)
    assert (result.pool_size, result.labelling_budget, result.distinct_records) == (30, 20, 20)
    assert result.forecasts[0].final["accuracy"]


def test_a_campaign_made_from_objects_cannot_be_rehearsed_by_its_folder(tmp_path: Path) -> None:
    from small_campaigns import linear_campaign

    linear_campaign(tmp_path / "c")
    with pytest.raises(DpalError, match="made in Python"):
        rehearse(tmp_path / "c")


def test_a_folder_that_is_no_campaign_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="is not a campaign's folder"):
        rehearse(tmp_path)


def test_a_plan_that_draws_at_random_is_not_rehearsed_twice(tmp_path: Path) -> None:
    file = configuration(tmp_path, epochs=2)
    result = rehearse(file, runs=1, with_random=True, settings=["plan.query_sizes=[]"])
    assert [forecast.selection for forecast in result.forecasts] == ["random"]


def test_runs_are_at_least_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="--runs"):
        rehearse(configuration(tmp_path), runs=0)


def test_mean_and_deviation() -> None:
    assert mean_and_deviation([0.5]) == (0.5, None)
    assert mean_and_deviation([0.4, 0.6]) == (0.5, pytest.approx(np.sqrt(0.02)))
