"""Records of plain values, as JSON holds them: read back with their types checked."""

from __future__ import annotations

import math
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from dualrank.sentences import shortened

Record = TypeVar("Record")


def record_of(kind: type[Record], found: Any) -> Record:
    """A dataclass from what JSON said of it; a ValueError names what is none of its values.

    >>> from dualrank.online.learner_record import Alarm
    >>> record_of(Alarm, {"time": 1, "kind": "curve", "said": "it moved"})
    Alarm(time=1.0, kind='curve', said='it moved')
    >>> record_of(Alarm, {"time": "noon", "kind": "curve", "said": "it moved"})
    Traceback (most recent call last):
    ValueError: time of Alarm is 'noon'
    """
    if not isinstance(found, dict):
        raise ValueError(f"{kind.__name__} is {shortened(found)}")
    hints = get_type_hints(kind)
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    values = {}
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{kind.__name__} has no {shortened(name)}")
        try:
            values[name] = _value(hints[name], value)
        except TypeError:
            raise ValueError(f"{name} of {kind.__name__} is {shortened(value)}") from None
    return kind(**values)


def _value(hint: Any, value: Any) -> Any:
    """The value as its type has it; a TypeError where it is none."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        if value is None:
            return None
        return _value(next(each for each in inner if each is not type(None)), value)
    if origin is Literal:
        if value in inner:
            return value
    elif origin is list:
        if isinstance(value, list):
            return [_value(inner[0], each) for each in value]
    elif origin is tuple:
        if isinstance(value, list) and (inner[-1] is ... or len(inner) == len(value)):
            each_of = [inner[0]] * len(value) if inner[-1] is ... else list(inner)
            return tuple(_value(kind, each) for kind, each in zip(each_of, value, strict=True))
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    elif type(value) is hint:
        return value
    raise TypeError
