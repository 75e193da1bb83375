"""The HTML of pages and tables, which stands in `templates/`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dualrank.report.in_words import numbers_in_words
from dualrank.showing.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **content: Any) -> Markup:
    """A template filled in; everything that is not `Markup` is escaped."""
    return Markup(_environment().get_template(template).render(**content))


def _as_text(value: Any) -> Any:
    """Text of the data without what would turn lines around; `Markup` is ours."""
    if type(value) is not str:
        return value
    return "\n".join(map(visible, value.split("\n")))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dualrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_as_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["numbers"] = numbers_in_words
    return environment
