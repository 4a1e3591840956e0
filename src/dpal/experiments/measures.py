"""What is measured after a campaign: both kinds of weights after each phase, and how good each selection was."""

from dataclasses import asdict
from typing import Any

import numpy as np

from dpal.campaign.campaign import Campaign
from dpal.campaign.metrics import metrics_of
from dpal.campaign.state import State
from dpal.data import Pool
from dpal.errors import InvalidArgument
from dpal.experiments.tracking import TrackingLearner
from dpal.randomness import SeededRandomness
from dpal.selection.acquisition import probabilities_from_logits
from dpal.selection.quality import quality

_BINS = 20


def phases_of(campaign: Campaign, learner: TrackingLearner) -> list[dict[str, Any]]:
    """Every phase with its plan, its time and its metrics on the test set."""
    state = campaign.state()
    found: list[dict[str, Any]] = []
    for trained in state.trained:
        phase = campaign.plan.phases[trained.phase]
        learner.load(campaign.folder / trained.file)
        groups = len(phase.sampling_probabilities)
        found.append(
            {
                "labels": sum(len(state.trainable(group)) for group in range(groups)),
                "steps": phase.steps,
                "noise_multiplier": phase.noise_multiplier,
                "expected_batch_size": phase.expected_batch_size,
                "seconds": trained.seconds,
                "engine": trained.engine,
                "weights": _metrics(campaign, learner, average=False),
                "average": _metrics(campaign, learner, average=True),
            }
        )
    return found


def _metrics(campaign: Campaign, learner: TrackingLearner, *, average: bool) -> dict[str, float]:
    tested = campaign.parts.evaluation
    if tested is None or tested.labels is None:
        raise InvalidArgument("the test set", None, "given, with labels")
    learner.predicts_with_average = average
    known = np.flatnonzero(tested.labelled())
    return metrics_of(
        learner.logits_of(tested.records)[known],
        tested.labels[known],
        multi_label=tested.multi_label,
        classes=tested.classes,
        evaluated=campaign.parts.evaluated_classes,
    )


def selections_of(campaign: Campaign, learner: TrackingLearner, *, predicts_with_average: bool) -> list[dict[str, Any]]:
    """The paper's measures of every selection that looked at scores, with the scores' distribution."""
    state = campaign.state()
    found: list[dict[str, Any]] = []
    for index, planned in enumerate(campaign.plan.selections):
        if not planned.reads_scores:
            continue
        # The model that selected: the last one that was trained before this group existed.
        earlier = [
            each for each in state.trained if len(campaign.plan.phases[each.phase].sampling_probabilities) <= index + 1
        ]
        learner.load(campaign.folder / earlier[-1].file)
        learner.predicts_with_average = predicts_with_average
        found.append(_selection(campaign, learner, state, index + 1))
    return found


def _selection(campaign: Campaign, learner: TrackingLearner, state: State, group: int) -> dict[str, Any]:
    pool: Pool = campaign.parts.pool
    before = {name for each in state.selected[:group] for name in (*each.to_label, *each.retired)}
    left = np.flatnonzero([name not in before for name in pool.ids.tolist()])
    acquisition = campaign.parts.acquisition
    logits = learner.logits(
        left, passes=acquisition.passes, randomness=SeededRandomness(seed=0, nothing_is_private=True)
    )
    scores = acquisition.scores(probabilities_from_logits(logits, multi_label=pool.multi_label))
    taken = set(state.selected[group].to_label)
    chosen = np.flatnonzero([name in taken for name in pool.ids[left].tolist()])
    wanted = campaign.plan.selections[group - 1].query_size
    low, high = float(scores.min()), float(scores.max())
    edges = np.linspace(min(low, 0.0), max(high, 1.0), _BINS + 1)
    return {
        "unlabelled": len(left),
        "wanted": wanted,
        "taken": len(chosen),
        "of_a_random_one": wanted / len(left),
        **asdict(quality(scores, chosen, wanted, nothing_is_private=True)),
        "histogram": {
            "edges": [round(float(edge), 4) for edge in edges],
            "pool": np.histogram(scores, edges)[0].tolist(),
            "taken": np.histogram(scores[chosen], edges)[0].tolist(),
        },
    }
