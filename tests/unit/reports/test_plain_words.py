"""What is said about an ε is true, and says so where there is little to say."""

import itertools
import math
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from small_campaigns import linear_model, linear_plan, linear_pool

import dpal
from dpal.campaign.campaign import Campaign
from dpal.privacy.rounding import rounded_up
from dpal.reports.campaign_data import report_data
from dpal.reports.campaign_report import write_report
from dpal.reports.campaign_table import status_view
from dpal.reports.certificate import certificate_of, verify_certificate
from dpal.reports.plain_words import exactly, guess_sentence, little_because, parameter, right_guesses, worst_case
from dpal.reports.plan_table import plan_view

CONFIDENT = ("differential privacy allows", "satisfies", "ordinary records do far worse")


def shown(view: RenderableType) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(view)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.0, 0.2), (1.0, 0.0), (1.0, 0.1), (3.0, 1e-3), (8.0, 1e-5)]
)
def test_no_guess_between_two_neighbours_is_better(epsilon: float, delta: float) -> None:
    """The worst pair of neighbours, outcome by outcome: every rule for guessing is tried."""
    with_record = [
        delta,
        (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon)),
        (1 - delta) / (1 + math.exp(epsilon)),
        0,
    ]
    blank = with_record[::-1]
    # It keeps the promise, with nothing to spare.
    assert sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(with_record, blank, strict=True)) == pytest.approx(
        delta
    )
    best = max(
        sum((p if says_used else q) / 2 for p, q, says_used in zip(with_record, blank, rule, strict=True))
        for rule in itertools.product((True, False), repeat=4)
    )
    assert right_guesses(epsilon, delta) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(0.1, "at most 52.50%"), (1.0, "at most 73.11%"), (8.0, "at most 99.97%"), (10.0, "at most 99.9955%")],
)
def test_the_number_is_rounded_up_and_never_to_certainty(epsilon: float, words: str) -> None:
    assert words in guess_sentence(epsilon, 1e-5)
    assert "ordinary records do far worse" in worst_case(epsilon, 1e-5, 1000)


def test_certainty_is_called_so() -> None:
    assert "every time (100%)" in guess_sentence(1000.0, 1e-5)
    assert "every time (100%)" in guess_sentence(1.0, 1.0)
    assert "ordinary records" not in worst_case(1000.0, 1e-5, 1000)


def test_what_protects_little() -> None:
    assert little_because(10.0, 1e-3, 1000) is None
    assert little_because(10.5, 1e-5, 1000) == "This protects little: ε = 10.5 is above 10."
    assert (
        little_because(1.0, 2e-3, 1000) == "This protects little: δ = 0.002 is above 1 / 1,000, the number of records."
    )
    assert " and " in str(little_because(11.0, 2e-3, 1000))


def test_a_promise_is_shown_with_every_digit() -> None:
    assert [exactly(value) for value in (8, 8.0, 0.1, 1e-5, 7.99999999)] == ["8", "8", "0.1", "1e-05", "7.99999999"]


def test_the_epsilon_of_a_mechanism_is_rounded_up_in_tables() -> None:
    assert parameter("choice_epsilon", 1.52341) == "1.5235"
    assert parameter("epsilon", 12.00001) == "12.0001"
    assert parameter("fraction_above", 0.375678) == "0.3757"


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (7.9999991, 6, 8.0),
        (7.999999, 6, 7.999999),
        (0.1, 1, 0.2),  # this float is a little above a tenth
        (0.5, 1, 0.5),
        (1e-12, 6, 1e-6),
        (0.0, 6, 0.0),
        (123456.789, 0, 123457.0),
        (1e25, 6, 1e25),
        (math.inf, 6, math.inf),
    ],
)
def test_rounding_never_goes_down(value: float, digits: int, expected: float) -> None:
    assert rounded_up(value, digits) == expected
    assert rounded_up(value, digits) >= value


def test_everything_says_what_eight_means(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    plan = linear_plan()
    Campaign.create(folder, plan=plan, pool=linear_pool(), model=linear_model(), oracle="simulated").run()
    page = write_report(folder, folder / "reports/report.html").read_text()
    document = certificate_of(folder)
    sentence = "could guess right at most 99.97% of the time"
    for text in (shown(plan_view(plan)), page, document["worst_case"]):
        assert sentence in text.replace("\n", " ")
        assert "protects little" not in text
    assert "protects little" not in shown(
        status_view(Campaign.open(folder, pool=linear_pool(), model=linear_model()).status())
    )
    assert "satisfies" in document["statement"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"target_epsilon": 1000, "planner": "naive", "selection": "random"}, "ε = 1000 is above 10"),
        ({"target_delta": 0.1}, "δ = 0.1 is above 1 / 24"),
    ],
    ids=["epsilon", "delta"],
)
def test_a_promise_that_protects_little_sounds_like_it_everywhere(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    folder = tmp_path / "c"
    plan: dpal.Plan = linear_plan(**changed)
    campaign = Campaign.create(folder, plan=plan, pool=linear_pool(), model=linear_model(), oracle="simulated")
    campaign.run()
    page = write_report(folder, folder / "reports/report.html").read_text()
    document = certificate_of(folder)
    verify_certificate(document)
    texts = {
        "plan": shown(plan_view(plan)),
        "status": shown(status_view(campaign.status())),
        "report": page,
        "certificate": f"{document['statement']} {document['worst_case']}",
    }
    for name, text in texts.items():
        assert f"This protects little: {reason}" in text, name
        assert "could guess right" in text, name
        assert not [words for words in CONFIDENT if words in text], name
    assert 'class="promise bad"' in page
    assert report_data(folder)["promise"].startswith("This protects little")
