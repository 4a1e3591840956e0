"""From a plan's selection to the mechanism that does it, so that what is run is what was charged."""

from dpal.errors import InvalidArgument
from dpal.planning.selections import SELECTIONS, PlannedSelection
from dpal.privacy.mechanisms import BernoulliSelection, DiscreteGaussian, DiscreteLaplace, Exponential
from dpal.selection.acquisition import Acquisition
from dpal.selection.mechanisms import NoisyTop, OneShotExponential, SelectionMechanism, Top, Uniform
from dpal.selection.threshold import ThresholdSampling


def mechanism_of(
    planned: PlannedSelection, acquisition: Acquisition, *, clip: float | None = None
) -> SelectionMechanism:
    """The mechanism of a planned selection. `clip` bounds scores where noise is for their range; see `Acquisition`."""
    size, highest = planned.query_size, acquisition.highest
    bound = acquisition.clip if clip is None else clip
    released = planned.released()
    match planned.mechanism, released.choice, released.threshold:
        case "random", _, _:
            return Uniform(query_size=size, highest=highest)
        case "none", _, _:
            return Top(query_size=size, highest=highest)
        case _, DiscreteLaplace() | DiscreteGaussian() as noise, None:
            return NoisyTop(query_size=size, highest=bound, noise=noise)
        case "exponential", _, _:
            weight_epsilon = planned.parameter("weight_epsilon")
            return OneShotExponential(
                query_size=size, highest=bound, weight_epsilon=weight_epsilon, unlabelled=planned.unlabelled
            )
        case "threshold", BernoulliSelection() as choice, Exponential() as threshold:
            fraction_above = planned.parameter("fraction_above")
            return ThresholdSampling(
                query_size=size, highest=highest, choice=choice, threshold=threshold, fraction_above=fraction_above
            )
        case _:
            raise InvalidArgument("the selection's mechanism", planned.mechanism, f"one of {', '.join(SELECTIONS)}")
