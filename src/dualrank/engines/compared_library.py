"""Comparing a file with the library that it is written for, where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from dualrank.engines.parity import Features, Scores, draw_sample, require_parity
from dualrank.engines.target import Export


def compare_if_installed(
    asked: Export,
    module: str,
    name: str,
    score: Callable[[Features], Scores],
    *,
    gap: float = 0.0,
) -> float | None:
    """How far the scores are apart; None if there is nothing to compare with.

    `gap` is how far from a threshold near 0 a value must lie for the library to tell.
    """
    if find_spec(module) is None:
        return None
    sample = draw_sample(asked.model, asked.documents, seed=asked.seed, gap=gap)
    expected = asked.model.predict(sample.features)
    return require_parity(asked.out, name, sample, score(sample.features), expected)


def said(apart: float | None, module: str) -> str:
    """The same as words."""
    if apart is None:
        return f"it was not compared with the model, because {module} is not installed"
    return f"its scores differ from the model's by at most {apart:.2g} of the score"
