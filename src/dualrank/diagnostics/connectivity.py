"""Are positions connected through documents that were seen at more than one of them?

Two positions are joined where documents that were shown at both were clicked at both: the ratio of
their click-through is then the ratio of examination, whatever the documents are worth. Positions
that no path joins to the first can be compared with it through features only, that is by believing
a ranker about which documents are equally relevant.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question
from dualrank.propensity.grouped_clicks import GroupedClicks, Sums
from dualrank.propensity.harvesting import interventional_sums
from dualrank.propensity.propensity import Propensity

NAME = "connectivity"
# Ratios of the ends of a 95% interval: beyond the first, examination is known to little more than
# ±40%; beyond the second it may as well be twice as large or half of it, and corrects nothing.
WIDE, USELESS = 2.0, 4.0


def connectivity(facts: LogFacts) -> Point:
    """The graph of positions: its parts, and how much of the log stands behind its edges."""
    grouped = facts.counted
    sums, pairs_of, impressions_of = grouped.total(_count)
    # Two positions are joined by documents that were clicked at both.
    joined = (sums > 0) & (sums.T > 0)
    count, part_of = connected_components(joined, directed=False)
    parts = [np.flatnonzero(part_of == each) for each in range(count)]
    parts = [part for part in parts if grouped.impressions[part].any()]
    apart = sorted(int(k) + 1 for part in parts if 0 not in part for k in part)
    pairs, moved_pairs = map(int, pairs_of)
    width = interval_width(facts.harvested)
    numbers = {
        "pairs": pairs,
        "share_of_pairs_at_two_positions": moved_pairs / pairs,
        "share_of_impressions_of_such_pairs": impressions_of[1] / impressions_of[0],
        "edges": [f"{a + 1}-{b + 1}" for a, b in np.argwhere(np.triu(joined, 1))],
        "parts": [[int(k) + 1 for k in part] for part in parts],
        "positions_apart": apart,
        "widest_interval_of_harvested_curve": width,
        "can_harvest": not apart and width <= USELESS,
    }
    asked = Question(NAME, numbers)
    seen = f"{numbers['share_of_pairs_at_two_positions']:.1%} of query–document pairs were seen at "
    seen += "two positions or more"
    if apart:
        return asked.answer(
            "failed" if facts.dataset is None else "warning",
            f"{seen}, and {_positions(apart)} apart from the first: only features can compare "
            f"{'it' if len(apart) == 1 else 'them'} with it.",
            "Swap the first result with a random one in some sessions or shuffle a few (see "
            "plan_swaps), or log two rankers.",
        )
    if width > WIDE:
        bounds = f"a factor of {width:.1f}" if np.isfinite(width) else "no bounds"
        return asked.answer(
            "warning" if width <= USELESS or facts.dataset is not None else "failed",
            f"{seen}; they connect all positions, but so weakly that the harvested curve is known "
            f"only within {bounds} at its worst position.",
            "Log longer, or swap more results.",
        )
    return asked.answer(
        "good",
        f"{seen}, and connect all {len(joined)} positions: examination can be read off the clicks "
        "alone.",
    )


def _count(part: GroupedClicks) -> Sums:
    """Sums of harvesting, and pairs and impressions: of all, and of those at several positions."""
    cells, moved = part.cells, part.cells.moved
    return (
        interventional_sums(moved, part.group_count).sum(axis=0),
        np.array([len(np.unique(each.document)) for each in (cells, moved)]),
        np.array([each.impressions.sum() for each in (cells, moved)]),
    )


def interval_width(curve: Propensity | str) -> float:
    """The largest ratio of the ends of the intervals; infinite where there is none."""
    if isinstance(curve, str) or curve.low is None or curve.high is None:
        return float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nan_to_num(curve.high / curve.low, nan=np.inf).max())


def _positions(numbers: list[int]) -> str:
    """Positions in words, runs as ranges.

    >>> _positions([3]), _positions([2, 3, 4, 7])
    ('position 3 stands', 'positions 2–4 and 7 stand')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    listed = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    return f"position {listed} stands" if len(numbers) == 1 else f"positions {listed} stand"
