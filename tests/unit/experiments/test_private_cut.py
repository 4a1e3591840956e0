import pytest

from dpal.experiments.private_cut import CUT, CUT_LABELS
from dpal.experiments.runs import Run
from dpal.planning.request import plan


@pytest.mark.parametrize("experiment", [CUT, CUT_LABELS], ids=lambda experiment: experiment.name)
def test_everything_but_the_choice_is_alike(experiment) -> None:
    for random, cut in zip(experiment.rows[::2], experiment.rows[1::2], strict=True):
        first, second = (Run(row=row, seed=1).description() for row in (random, cut))
        assert (first["plan"].pop("planner"), second["plan"].pop("planner")) == ("no-al", "scouting")
        assert first.pop("row") != second.pop("row")
        assert first == second


@pytest.mark.parametrize("row", (*CUT.rows, *CUT_LABELS.rows), ids=lambda row: row.name)
def test_all_plans_have_their_steps_and_rates_for_their_labels(row) -> None:
    arguments = Run(row=row, seed=1).plan_arguments()
    labels = arguments["initial_size"] + sum(arguments["query_sizes"])
    assert labels == 25_000 * row.labels and len(arguments["query_sizes"]) == 1
    made = plan(**{**arguments, "accountant": "rdp"})
    assert sum(phase.steps for phase in made.phases) == (1_220 if row.name.endswith("-long") else 500)
    assert made.phases[-1].expected_batch_size / labels == pytest.approx(4096 / 25_000, rel=5e-3)
