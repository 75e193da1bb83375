"""The options of all rankers, read off their settings: a new ranker brings its own."""

from __future__ import annotations

from dataclasses import dataclass, fields, make_dataclass
from typing import Annotated, Any, get_origin, get_type_hints

from dualrank.errors import SettingsError
from dualrank.rankers.kinds import RANKERS, kind_of_ranker
from dualrank.rankers.ranker import RankerSettings


def _described(kind: type[RankerSettings]) -> dict[str, tuple[str, Any, Any]]:
    """The fields of a ranker's settings that say what they are: name, annotation, default."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        each.name: (each.name, hints[each.name], each.default)
        for each in fields(kind)  # type: ignore[arg-type]
        if get_origin(hints[each.name]) is Annotated
    }


@dataclass(frozen=True)
class RankerChoice:
    """Which ranker is meant; `RankerOptions` adds the options of each."""

    ranker: Annotated[str, f"What scores documents: {', '.join(RANKERS)}."] = "dnn"

    def settings(self) -> RankerSettings:
        """The settings of the ranker that was chosen."""
        kind = kind_of_ranker(self.ranker)
        own = _described(kind)
        for name, (_, _, default) in _OPTIONS.items():
            if name not in own and getattr(self, name) != default:
                option = name.replace("_", "-")
                raise SettingsError(f"--{option} says nothing to a ranker of kind {self.ranker}")
        return kind(**{name: getattr(self, name) for name in own})


# An option that several rankers have is one for all of them.
_OPTIONS = {name: each for kind in RANKERS.values() for name, each in _described(kind).items()}
RankerOptions = make_dataclass(
    "RankerOptions",
    _OPTIONS.values(),
    bases=(RankerChoice,),
    frozen=True,
)
