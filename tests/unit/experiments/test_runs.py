"""What runs are, without running any: names, the paper's hyperparameters, plans at full scale."""

import json

import pytest

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.runs import Run
from dpal.experiments.scales import SCALES
from dpal.planning.request import plan

ROWS = {row.full_name: row for experiment in EXPERIMENTS.values() for row in experiment.rows}


HEADLINE = {row.name: Run(row=row, seed=1) for row in EXPERIMENTS["headline"].rows}


def test_a_name_means_one_run() -> None:
    for experiment in EXPERIMENTS.values():
        for row in experiment.rows:
            assert Run(row=row, seed=1).hash() == Run(row=ROWS[row.full_name], seed=1).hash()
    hashes = {
        Run(row=row, scale=scale, seed=seed).hash() for row in ROWS.values() for scale in SCALES for seed in (1, 2)
    }
    assert len(hashes) == len(ROWS) * len(SCALES) * 2


def test_a_description_survives_json() -> None:
    for row in ROWS.values():
        description = Run(row=row, seed=1).description()
        assert json.loads(json.dumps(description))["plan"]["target_epsilon"] == description["plan"]["target_epsilon"]


def test_every_run_states_its_learning_rate() -> None:
    """The default of networks from scratch may be fitted again; published runs must not change with it."""
    for row in ROWS.values():
        assert Run(row=row, seed=1).training().learning_rate is not None


def test_the_papers_steps() -> None:
    """100 epochs of 25,000 in batches of 4,096; 30 epochs of each phase of the naive plan."""
    at_once = plan(**HEADLINE["random"].plan_arguments())
    assert [phase.steps for phase in at_once.phases] == [round(100 * 25_000 / 4_096)]
    naive = plan(**HEADLINE["random-naive-al"].plan_arguments())
    assert sum(phase.steps for phase in naive.phases) == pytest.approx(30 * 102_000 / 4_096, abs=3)


@pytest.mark.parametrize("name", HEADLINE)
def test_every_row_has_the_same_promise_and_labels(name: str) -> None:
    made = plan(**HEADLINE[name].plan_arguments())
    assert made.epsilon <= 8 and made.setting.target_delta == 1e-5
    assert sum(group.size for group in made.groups) == 25_000
