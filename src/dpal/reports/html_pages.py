"""HTML pages from Jinja2 templates: always escaped, one look, nothing loaded from outside."""

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpal.reports.plain_words import exactly, spaced

_TEMPLATES = Environment(
    loader=PackageLoader("dpal.reports"),
    autoescape=True,
    # A misspelt name is an error, not an empty place in a report.
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render(template: str, **values: object) -> str:
    """The page. Every value is escaped, except figures that `inline_svg` declares to be markup."""
    return _TEMPLATES.get_template(template).render(**values)


def inline_svg(svg: str) -> Markup:
    """An SVG that matplotlib wrote, as markup: it escapes the texts inside by itself."""
    return Markup(svg)  # noqa: S704


def grouped(number: float) -> str:
    """A whole number with commas: 12,000."""
    return f"{number:,.0f}"


def percent(fraction: float) -> str:
    return f"{fraction:.2%}"


_TEMPLATES.filters |= {"exactly": exactly, "grouped": grouped, "percent": percent, "spaced": spaced}
