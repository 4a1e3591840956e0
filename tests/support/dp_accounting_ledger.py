"""A campaign's exported ledger, accounted by dp-accounting: nothing of ours but the numbers."""

import math
import warnings
from itertools import product
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import dp_accounting
    from dp_accounting import pld


def group_accountants(ledger: dict[str, Any]) -> list[Any]:
    """One accountant for each group, with the group's training composed."""
    groups = max(len(phase["sampling_probabilities"]) for phase in ledger["phases"])
    found = []
    for group in range(groups):
        accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
        for phase in ledger["phases"]:
            if group < len(phase["sampling_probabilities"]):
                noise = dp_accounting.GaussianDpEvent(phase["noise_multiplier"])
                event = dp_accounting.PoissonSampledDpEvent(phase["sampling_probabilities"][group], noise)
                accountant.compose(event, phase["steps"])
        found.append(accountant)
    return found


def delta_of_branches(ledger: dict[str, Any], accountants: list[Any], target_epsilon: float) -> float:
    """The δ of the campaign at ε: the worst over all sequences of scores and both directions."""
    worst = accountants[0].get_delta(target_epsilon)
    selections = ledger["selections"]
    for direction, highs in product(("_pmf_remove", "_pmf_add"), product((False, True), repeat=len(selections))):
        leaves = [getattr(accountant._pld, direction) for accountant in accountants]
        total, reached, epsilon = 0.0, 1.0, target_epsilon
        for is_high, selection, leaf in zip(highs, selections, leaves[1:], strict=True):
            if selection["mechanism"] == "random":
                # The choice looks at nobody: the same chance with and without the record, for any number of others.
                chance = selection["query_size"] / selection["unlabelled"]
                record = blank = chance
            else:
                record = selection["probability_high"] if is_high else selection["probability_low"]
                blank = selection["probability_low"]
                epsilon -= selection["threshold_epsilon"]
            a, b = (record, blank) if direction == "_pmf_remove" else (blank, record)
            total += reached * a * leaf.get_delta_for_epsilon(epsilon - math.log(a / b))
            epsilon -= math.log((1 - a) / (1 - b))
            reached *= 1 - a
        total += reached * max(0.0, -math.expm1(epsilon))
        worst = max(worst, total)
    return worst
