"""The differences that a counterfactual found, in the order in which people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from dualrank.decisions.estimate_words import (
    ESTIMATORS,
    ends_kept,
    estimator_label,
    in_a_sentence,
    metric_terms,
)
from dualrank.decisions.estimates_of_value import DOUBLY_ROBUST
from dualrank.sentences import counted, listed
from dualrank.showing.axes import title
from dualrank.showing.card import card, grid, said
from dualrank.showing.interval_rows import Interval, draw_intervals, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.decisions.counterfactual import Counterfactual, Estimate

By = Literal["estimator", "metric", "part"]
CLICKS = "clicks"
COLUMNS = ("difference", "95% interval", "relative", "new", "old")
LONGEST_PART = 40


def metric_labels(found: Counterfactual) -> dict[str, tuple[str, str]]:
    """Label and meaning of the metrics that were estimated."""
    names = list(dict.fromkeys(each.metric for each in found.estimates))
    return metric_terms(names, weighed=found.events is not None)


def rows_by(found: Counterfactual, by: By) -> list[tuple[str, Estimate | None]]:
    """Labels with their estimates, or None where the log does not allow one.

    By estimator it is clicks that are compared, by metric and by part of the sessions the doubly
    robust estimates.
    """
    if by == "part":
        return [(ends_kept(each.part, LONGEST_PART), each) for each in found.parts]
    whole = [each for each in found.estimates if not each.part]
    if by == "metric":
        main = {each.metric: each for each in whole if each.estimator == DOUBLY_ROBUST}
        labels = metric_labels(found)
        return [(labels[name][0], main[name]) for name in labels if name in main]
    known = {each.estimator: each for each in whole if each.metric == CLICKS}
    names = [name for name in (*ESTIMATORS, *known) if name in known or name in found.refused]
    return [(estimator_label(name), known.get(name)) for name in dict.fromkeys(names)]


def intervals_by(found: Counterfactual, by: By) -> list[Interval]:
    """The rows as they are drawn; the verdict goes by the strong one."""
    main = estimator_label(DOUBLY_ROBUST)
    return [
        Interval(label)
        if each is None
        else Interval(label, each.difference, each.low, each.high, label == main)
        for label, each in rows_by(found, by)
    ]


def heading_by(found: Counterfactual, by: By) -> str:
    """What is drawn."""
    value = in_a_sentence(metric_labels(found)[CLICKS][0])
    return {
        "estimator": f"Difference in {value}",
        "metric": "Difference by metric, doubly robust",
        "part": "Difference by part of the traffic",
    }[by]


def cells_of(each: Estimate) -> tuple[str, ...]:
    """An estimate as a row of `COLUMNS`."""
    relative = f"{signed(100 * each.difference / each.old, 1)}%" if each.old > 0 else "–"
    return (
        signed(each.difference),
        f"{signed(each.low)} to {signed(each.high)}",
        relative,
        *(f"{value:.4f}".replace("-", "−") for value in (each.new, each.old)),
    )


def refusals(refused: Mapping[str, str]) -> list[str]:
    """Estimators that the log does not allow, by the reason."""
    reasons: dict[str, list[str]] = {}
    for name, why in refused.items():
        reasons.setdefault(why, []).append(estimator_label(name))
    return [
        f"Refused: {listed(names)}. {why[:1].upper()}{why[1:]}." for why, names in reasons.items()
    ]


def counterfactual_card(found: Counterfactual, sentences: tuple[str, ...]) -> str:
    """The verdict in sentences, and the difference by every estimator and metric."""
    tables = []
    for by, corner in _CORNERS.items():
        rows = rows_by(found, by)
        if not rows:
            continue
        main = [n for n, each in enumerate(intervals_by(found, by)) if each.strong]
        cells = [
            (label, *(("refused", "", "", "", "") if each is None else cells_of(each)))
            for label, each in rows
        ]
        tables.append(grid((corner, *COLUMNS), cells, strong=main))
    return card(
        "Counterfactual",
        (
            counted(found.sessions, "sessions"),
            counted(found.queries, "queries"),
            f"examination {found.curve_source}",
        ),
        said(*sentences),
        *tables,
        said(*refusals(found.refused), aside=True),
    )


def draw_differences(ax: Axes, found: Counterfactual, by: By) -> None:
    """Differences with their intervals against zero: right of it the new ranking earns more."""
    draw_intervals(ax, intervals_by(found, by))
    title(ax, heading_by(found, by))
    ax.set_xlabel("new minus old, per session, with 95% intervals")


_CORNERS: Mapping[By, str] = {
    "estimator": "clicks, by estimator",
    "metric": "doubly robust, by metric",
    "part": "doubly robust, by part",
}
