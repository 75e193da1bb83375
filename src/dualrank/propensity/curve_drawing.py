"""Examination drawn: one curve, or those of several methods side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dualrank.showing.axes import palette_of
from dualrank.showing.position_curves import draw_curve, finish_curves, from_zero

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.propensity.propensity import Propensity

_LOOKS = {
    "click-through": ("gray", "v"),
    "randomisation": ("muted", "s"),
    "pair-swaps": ("orange", "P"),
    "harvest-pivot": ("sky", "^"),
    "harvest-adjacent": ("green", "<"),
    "harvest-all-pairs": ("blue", "D"),
    "pbm": ("purple", "d"),
    "regression-em": ("ink", "X"),
    "dla": ("vermilion", "o"),
}
"""Colour and mark of every estimator; others take what is free."""


def draw_examination(ax: Axes, curve: Propensity, label: str, **style: Any) -> None:
    """One curve from 0 upwards, beside those that are on these axes already."""
    look, taken = _LOOKS.get(curve.method), {line.get_color() for line in ax.lines}
    if look is not None and palette_of(ax)[look[0]] in taken:
        look = None
    values, low, high = curve.examination, curve.low, curve.high
    draw_curve(ax, values, low, high, label=label, look=look, **style)
    from_zero(ax, values, high)
    finish_curves(ax, "Examination, relative to position 1")


def draw_side_by_side(ax: Axes, curves: Mapping[str, Propensity]) -> None:
    """Curves by method on a logarithmic axis, moved aside so that no interval hides another."""
    from matplotlib.ticker import LogLocator

    room = 0.5 / max(len(curves), 1)
    for number, (name, found) in enumerate(curves.items()):
        draw_curve(
            ax,
            found.examination,
            found.low,
            found.high,
            label=name,
            look=_LOOKS.get(name),
            shift=room * (number - (len(curves) - 1) / 2),
            lw=1.2,
        )
    every = np.concatenate([found.examination for found in curves.values()])
    ax.set_yscale("log")
    ax.set_ylim(every.min() / 1.5, max(1.0, every.max()) * 1.5)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.minorticks_off()
    finish_curves(ax, "Relative examination (log scale)", loc="lower left")
