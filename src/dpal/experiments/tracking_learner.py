"""A learner that keeps the weights and their moving average side by side, so that one run measures both."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from dpal.data.records import Records
from dpal.training.learner import Learner


class TrackingLearner(Learner):
    """Always keeps the average; `predicts_with_average` says which of the two selects and is measured."""

    def __init__(self, learner: Learner, *, decay: float, predicts_with_average: bool) -> None:
        super().__init__(
            learner.model,
            learner.records,
            multi_label=learner.multi_label,
            settings=replace(learner.settings, average=decay),
            compute=learner.compute,
        )
        self.predicts_with_average = predicts_with_average

    def _best(self) -> AbstractContextManager[None]:
        return super()._best() if self.predicts_with_average else nullcontext()


def tracking(
    make: Callable[[Records], Learner], *, decay: float, predicts_with_average: bool
) -> Callable[[Records], Learner]:
    """The same factory, but of tracking learners."""
    return lambda records: TrackingLearner(make(records), decay=decay, predicts_with_average=predicts_with_average)
