"""The methods of the paper's table and our own, by what they change."""

from dpal.experiments.methods import (
    ACQUISITIONS,
    everything,
    everything_at_once,
    everything_but_copies,
    own_columns,
    paper_methods,
    with_laplace,
)

TASK = "cifar10-resnet9"


def test_the_papers_table_has_every_method_once() -> None:
    rows = paper_methods(TASK)
    assert len(rows) == 3 + 2 * len(ACQUISITIONS) == len({row.name for row in rows})
    assert [row.acquisition for row in rows[-4:]] == list(ACQUISITIONS)
    private = [row for row in rows if row.plan.get("selection") == "laplace"]
    # The paper's share of ε for selection is 2 of 8.
    assert {row.plan["selection_epsilon"] for row in private} == {2.0}
    assert sum(row.plan.get("selection") == "none" for row in rows) == len(ACQUISITIONS)


def test_changes_go_on_top_and_leave_the_rest() -> None:
    row = with_laplace(TASK, plan={"selection_epsilon": 3.0})
    assert row.plan == {"selection": "laplace", "selection_epsilon": 3.0}
    assert with_laplace(TASK).plan["selection_epsilon"] == 2.0


def test_each_of_our_own_rows_changes_one_thing() -> None:
    base = with_laplace(TASK)
    for row in own_columns(TASK):
        if row.name.startswith("own-"):
            changed = [
                name
                for name in ("plan", "training", "average", "acquisition")
                if getattr(row, name) != getattr(base, name)
            ]
            assert len(changed) == 1, row.name
            if changed == ["plan"]:
                assert len(row.plan.items() - base.plan.items()) == 1


def test_the_comparison_without_active_learning_trains_in_the_same_way() -> None:
    ours, at_once = everything(TASK), everything_at_once(TASK)
    assert at_once.at_once and not ours.at_once
    assert (at_once.training, at_once.average) == (ours.training, ours.average)
    plain = everything_but_copies(TASK)
    assert (plain.plan, plain.average, plain.training) == (ours.plan, ours.average, {})
