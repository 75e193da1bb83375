"""Values, settings and times as people write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

_FIRST = (
    *("data", "queries", "documents", "features", "ranker", "users", "sessions_per_list"),
    *("lists_per_query", "steps", "batch_size", "eta", "epsilon", "true_examination", "seeds"),
)
_NAMES = {
    "sessions_per_list": "Sessions per list, on average",
    "steps": "Training steps",
    "eta": "Position bias, η",
    "epsilon": "Click noise, ε",
}


def described(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings in words, the well-known ones first; command and version have their own place."""
    known = [key for key in _FIRST if settings.get(key) is not None]
    others = [key for key in settings if key not in (*_FIRST, "command", "version")]
    return [
        (_NAMES.get(key, key.replace("_", " ").capitalize()), in_words(settings[key]))
        for key in [*known, *others]
    ]


def in_words(value: object) -> str:
    """A value as people write it.

    >>> in_words({"train": 8000, "valid": 0.25}), in_words([1, None, True])
    ('train 8,000, valid 0.25', '1, none, yes')
    """
    if value is None or isinstance(value, bool | np.bool_):
        return "none" if value is None else "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}" if np.isfinite(value) else "unknown"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(in_words(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def p_in_words(p: float, decimals: int = 4) -> str:
    """A p-value, which is never 0 however it rounds.

    >>> p_in_words(0.0123), p_in_words(0.00001), p_in_words(0.0004, 3)
    ('0.0123', '< 0.0001', '< 0.001')
    """
    least = 10.0**-decimals
    return f"< {least:.{decimals}f}" if p < least else f"{p:.{decimals}f}"


def numbers_in_words(numbers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Single numbers with their names; curves and tables stay in the JSON.

    >>> numbers_in_words({"share_of_pairs": 0.25, "curve": [1.0, 0.5], "first": {"ratio": 1.5}})
    [('share of pairs', '0.25'), ('first: ratio', '1.5')]
    """
    found = []
    for key, value in numbers.items():
        name = str(key).replace("_", " ")
        if isinstance(value, Mapping):
            found += [(f"{name}: {inner}", text) for inner, text in numbers_in_words(value)]
        elif isinstance(value, str | int | float | np.bool_ | np.integer | np.floating):
            said = in_words(value) if key != "p_value" else p_in_words(float(value))
            found.append((name, said))
    return found
