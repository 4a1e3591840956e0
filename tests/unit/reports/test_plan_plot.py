from pathlib import Path

import pytest
from small_campaigns import linear_plan

from dpal.errors import InvalidArgument
from dpal.reports.plan_plot import plot_plan


@pytest.mark.parametrize(("name", "start"), [("p.png", b"\x89PNG"), ("p.pdf", b"%PDF"), ("p.SVG", b"<?xml")])
def test_the_suffix_decides_the_format(tmp_path: Path, name: str, start: bytes) -> None:
    plot_plan(linear_plan(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"\.pdf, \.png, \.svg"):
        plot_plan(linear_plan(), tmp_path / "plan.bmp")
    assert list(tmp_path.iterdir()) == []
