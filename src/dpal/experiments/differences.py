"""What is to be said beside the numbers: how they were made, and why they differ from the paper's."""

INTRODUCTION = (
    "Generated from `experiments/results` with `dpal experiments table all --markdown docs/results.md`; only what was "
    "really run is in it. Every run is a campaign with a simulated oracle and a seed, so nothing in these runs is "
    "private, and every one can be repeated."
)

DIFFERENCES: dict[str, str] = {}
