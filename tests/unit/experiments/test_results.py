"""What was measured, read and written."""

import math

from dpal.experiments.results import figure


def test_means_and_deviations() -> None:
    documents = [{"phases": [{"weights": {"accuracy": value}}]} for value in (0.6, 0.62)]
    found = figure(documents, "accuracy", "weights")
    assert found is not None and found.seeds == 2
    assert math.isclose(found.mean, 61) and math.isclose(found.deviation or 0, math.sqrt(2))
    assert str(found) == "61.00 ± 1.41 (2)"
