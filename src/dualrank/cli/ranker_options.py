"""The options of all rankers, read off their settings: a new ranker brings its own."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any, get_origin, get_type_hints

from dualrank.errors import SettingsError
from dualrank.rankers.kinds import RANKERS
from dualrank.rankers.ranker import RankerSettings


def _options() -> dict[str, tuple[Any, Any]]:
    """The described fields of every ranker's settings, each with its default."""
    found: dict[str, tuple[Any, Any]] = {}
    for settings in RANKERS.values():
        hints = get_type_hints(settings, include_extras=True)
        for each in fields(settings):  # type: ignore[arg-type]
            if get_origin(hints[each.name]) is Annotated:
                found[each.name] = hints[each.name], each.default
    return found


def _settings(options: Any) -> RankerSettings:
    """The settings of the ranker that was chosen."""
    if options.ranker not in RANKERS:
        known = ", ".join(RANKERS)
        raise SettingsError(f"unknown ranker {options.ranker!r}; known are {known}")
    kind = RANKERS[options.ranker]
    offered = _options()
    names = [each.name for each in fields(kind) if each.name in offered]  # type: ignore[arg-type]
    return kind(**{name: getattr(options, name) for name in names})


RankerOptions = make_dataclass(
    "RankerOptions",
    [
        ("ranker", Annotated[str, f"What scores documents: {', '.join(RANKERS)}."], "dnn"),
        *((name, kind, field(default=default)) for name, (kind, default) in _options().items()),
    ],
    frozen=True,
    namespace={"settings": _settings},
)
