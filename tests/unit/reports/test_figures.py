from matplotlib.figure import Figure

from dpal.reports.figures import COLOURS, MARKERS, as_svg, line_style


def figure(title: str) -> Figure:
    made = Figure()
    made.subplots().set_title(title)
    return made


def test_the_same_figure_is_the_same_text() -> None:
    assert as_svg(figure("a")) == as_svg(figure("a")) != as_svg(figure("b"))
    assert as_svg(figure("a")).startswith("<svg")


def test_texts_in_a_figure_are_escaped() -> None:
    assert "<script" not in as_svg(figure("--><script>alert(1)</script>"))


def test_the_first_seven_lines_differ_in_colour_and_marker() -> None:
    looks = [line_style(index) for index in range(7)]
    assert {look["color"] for look in looks} == set(COLOURS)
    assert {look["marker"] for look in looks} == set(MARKERS)
    assert line_style(7) == line_style(0)
