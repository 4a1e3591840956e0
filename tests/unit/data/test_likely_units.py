"""Ids that look as if several records belonged to one person."""

import pytest

from dpal.data.likely_units import likely_pattern


@pytest.mark.parametrize(
    ("ids", "pattern"),
    [
        ([f"{number // 3:08d}_{number % 3:03d}" for number in range(60)], "^([^_]+)_"),
        ([f"patient-{number // 4}/scan-{number % 4}.png" for number in range(60)], "^([^/]+)/"),
        ([f"{number // 2}{'ab'[number % 2]}.png" for number in range(40)], "^([0-9]+)[^0-9]"),
    ],
)
def test_several_records_of_one_person(ids: list[str], pattern: str) -> None:
    assert likely_pattern(ids) == pattern


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [str(number) for number in range(100)],
        [f"ISIC_{number:07d}" for number in range(100)],
        [f"scan-{number}.png" for number in range(100)],
        # Folders named after classes.
        [f"{'ill' if number % 3 else 'healthy'}/{number}.png" for number in range(300)],
        [f"{number}_0" for number in range(100)],
        # Some ids are of another kind.
        [*(f"{number // 3}_{number % 3}" for number in range(60)), "readme"],
    ],
)
def test_single_records(ids: list[str]) -> None:
    assert likely_pattern(ids) is None
