"""Examination and its intervals, as few characters say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dualrank.propensity.propensity import Propensity


def short(value: float) -> str:
    """Four characters.

    >>> [short(value) for value in (1.0, 0.7116, 0.0042)]
    ['1.00', '.712', '.004']
    """
    return f"{value:.2f}" if value >= 0.9995 else f"{value:.3f}"[1:]


def half_widths(found: Propensity) -> list[str]:
    """How far the interval goes up, relative to the estimate; it goes as far down in ratio.

    >>> from dualrank.propensity.propensity import Propensity
    >>> curve = Propensity(np.ones(4), "x", high=np.array([1, 1.07, 2.5, np.inf]))
    >>> half_widths(curve)
    ['', '±7%', '×2.5', '×∞']
    """
    if found.high is None:
        return []
    ratios = np.nan_to_num(found.high / found.examination, nan=np.inf, posinf=np.inf)
    words = [f"±{r - 1:.0%}" if r < 1.5 else f"×{r:.2g}" for r in ratios]
    return ["", *(word.replace("inf", "∞") for word in words[1:])]
