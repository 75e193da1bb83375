"""Does examination differ between parts of the log?

Two parts are compared on the query–document pairs that both show at the same position, so that
relevance cancels: with n and n' impressions of such a cell, and v = n n'/(n + n'),

    change_k = [Σ v c/n  /  Σ v c'/n'] at k,  divided by the same at position 1,

is 1 where the two parts have the same curve, even if one of them has more clicks throughout. Parts
are the first and the last period of the log, and every value of a context column against its most
frequent one. Intervals come from resampling queries, and are those of all positions of all
comparisons together (Bonferroni): a change is what its interval excludes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dualrank.certainty import ALARM, SURELY, TELLING, seen
from dualrank.data.click_log import PERIOD, ClickLog
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question, two_sided
from dualrank.propensity.bootstrap import log_ratio, resampled_sums, spread_of
from dualrank.propensity.grouped_clicks import Cells

NAME = "drift"
NOTABLE, LARGE = 1.1, 1.5
MOST_VALUES = 10
LEAST_SHARE = 0.01

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Change:
    """The curve of one part of the log relative to that of another, by position."""

    column: str
    part: str
    against: str
    factor: Floats
    error: Floats
    p_values: Floats

    def is_clear(self, errors: float) -> NDArray[np.bool_]:
        """Where the interval of so many standard errors excludes 1."""
        known = np.isfinite(self.error) & (self.error > 0)
        reach = np.where(known, errors * self.error, np.inf)
        return np.abs(np.log(self.factor)) > reach

    def interval(self, errors: float) -> tuple[Floats, Floats]:
        """So many standard errors on either side of the factor."""
        with np.errstate(over="ignore"):  # beyond all numbers is unbounded
            reach = np.exp(errors * self.error)
            return self.factor / reach, self.factor * reach

    def describe(self, k: int, errors: float) -> str:
        """What changed at position k (from 0), in words."""
        more = "more" if self.factor[k] > 1 else "less"
        size = max(self.factor[k], 1 / self.factor[k])
        low, high = (size * np.exp(side * errors * self.error[k]) for side in (-1, 1))
        return (
            f"{self.column} {self.part} looks {size:.2f} times {more} at position {k + 1} "
            f"({SURELY} interval {low:.2f}–{high:.2f}) than {self.against}"
        )


def drift(facts: LogFacts) -> Point:
    """Every comparison that the log's columns allow."""
    log = facts.log
    if not any(len(column.names) > 1 for column in log.columns.values()):
        return Question(NAME).answer(
            "not measured",
            "The log has neither timestamps nor contexts to compare.",
            "Log a timestamp, and name the columns that tell contexts apart.",
        )
    changes = [
        change
        for column, part, against in _comparisons(log)
        if (change := compare(facts, column, part, against)) is not None
    ]
    if not changes:
        return Question(NAME).answer(
            "not measured", "No document was clicked at the same positions in two parts of the log."
        )
    tests = sum(len(change.factor) - 1 for change in changes)
    needed = errors_needed(tests, facts)
    found: list[tuple[float, str]] = []
    for change in changes:
        size = np.maximum(change.factor, 1 / change.factor)
        clear = change.is_clear(needed) & (size > NOTABLE)
        if clear.any():
            k = int(np.where(clear, size, 0).argmax())
            found.append((float(size[k]), change.describe(k, needed)))
    numbers = {
        "level": ALARM / tests,
        "comparisons": [
            {
                "column": change.column,
                "part": change.part,
                "against": change.against,
                "factor": change.factor,
                "low": change.interval(needed)[0],
                "high": change.interval(needed)[1],
                "p_values": change.p_values,
            }
            for change in changes
        ],
    }
    asked = Question(NAME, numbers)
    compared = f"{len(changes)} comparison{'s' * (len(changes) > 1)}"
    if not found:
        errors = np.concatenate([change.error[1:] for change in changes])
        with np.errstate(over="ignore"):
            shows = float(np.exp(seen(needed) * np.median(errors)))
        power = (
            f"at a typical position one by a factor of {max(shows, NOTABLE):.2f} would have shown"
            if np.isfinite(shows)
            else "there are too few clicks for one to show"
        )
        return asked.answer(
            "good" if shows <= TELLING else "not measured",
            f"No change of the curve was found ({compared}); {power}.",
        )
    largest, said = max(found)
    return asked.answer(
        "failed" if largest > LARGE else "warning",
        f"One curve does not fit the whole log ({compared}): {said}.",
        "Train on the latest period alone, and with a curve per context where contexts differ.",
    )


def compare(facts: LogFacts, column: str, part: str, against: str) -> Change | None:
    """One part against another, or None where position 1 has no cell in both."""
    values = facts.log.column(column)
    codes = [values.names.index(name) for name in (part, against)]
    rows = [facts.log.take_rows(np.flatnonzero(values.codes == code)) for code in codes]
    one, other = (facts.grouped.part(each, facts.seed + side) for side, each in enumerate(rows))
    ours, theirs = _common(one.cells, other.cells)
    v = ours.impressions * theirs.impressions / (ours.impressions + theirs.impressions)
    sums = [
        _by_group(cells, v, grouped.group_count)
        for cells, grouped in ((ours, one), (theirs, other))
    ]
    if facts.grouped.over == "queries":
        resampled = resampled_sums(np.stack(sums, axis=1), seed=facts.seed)
    else:
        draws = [resampled_sums(each, seed=facts.seed + side) for side, each in enumerate(sums)]
        resampled = np.stack(draws, axis=1)
    level = log_ratio(np.stack([each.sum(axis=0) for each in sums]))
    if not np.isfinite(level[0]):
        return None
    # Where a resample may lack all clicks of a position, nothing is claimed about it.
    error = spread_of(log_ratio(resampled))
    error[0] = 0.0
    estimate = np.where(np.isfinite(level), level - level[0], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = two_sided(np.abs(estimate) / error, facts.grouped.group_count - 1)
    p_values[~np.isfinite(error) | (error == 0)] = 1.0
    return Change(column, part, against, np.exp(estimate), error, p_values)


def errors_needed(tests: int, facts: LogFacts) -> float:
    """Standard errors on either side of an interval, where so many are looked at together."""
    return float(student.isf(ALARM / (2 * tests), facts.grouped.group_count - 1))


def _comparisons(log: ClickLog) -> list[tuple[str, str, str]]:
    """Column, part and what it is compared with: last to first period, values to the commonest."""
    found = []
    for name, column in log.columns.items():
        sessions = np.bincount(column.codes, log.counts, len(column.names))
        if name == PERIOD:
            periods = np.flatnonzero(sessions)
            if len(periods) > 1:
                found.append((name, column.names[periods[-1]], column.names[periods[0]]))
            continue
        order = np.argsort(-sessions, kind="stable")[:MOST_VALUES]
        found += [
            (name, column.names[code], column.names[order[0]])
            for code in order[1:]
            if sessions[code] >= LEAST_SHARE * log.sessions
        ]
    return found


def _common(one: Cells, other: Cells) -> tuple[Cells, Cells]:
    """The cells that both parts have, in the same order."""
    places = [cells.document * cells.depth + cells.position for cells in (one, other)]
    return one.take(np.isin(places[0], places[1])), other.take(np.isin(places[1], places[0]))


def _by_group(cells: Cells, v: Floats, groups: int) -> Floats:
    """Σ v c/n by group and position."""
    share = (v / cells.impressions)[cells.cell] * cells.clicked
    place = cells.group * cells.depth + cells.position[cells.cell]
    sums = np.bincount(place, share, groups * cells.depth).astype(np.float64)
    return sums.reshape(groups, cells.depth)
