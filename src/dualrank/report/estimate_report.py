"""The page that decides: what a new ranker would earn, how sure that is, and what it hangs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualrank.decisions.counterfactual import Counterfactual, Estimate
from dualrank.decisions.estimate_rows import (
    CLICKS,
    COLUMNS,
    By,
    cells_of,
    heading_by,
    intervals_by,
    metric_labels,
    refusals,
    rows_by,
)
from dualrank.decisions.estimate_words import (
    ESTIMATORS,
    ends_kept,
    estimator_label,
    in_a_sentence,
)
from dualrank.report.estimate_grounds import SUPPORT, curve_section, support_section
from dualrank.report.interval_figure import interval_figure
from dualrank.report.moves_table import moves_section
from dualrank.report.sheet import Exhibit, Explanation, Section, Sheet
from dualrank.report.table import Row, Table
from dualrank.sentences import counted
from dualrank.storage import write_text

if TYPE_CHECKING:
    from rich.console import Console

MAIN = "doubly-robust"
WHERE, PARTS = "Where clicks fall", "Parts of the traffic"
LONGEST_NAME = 60


def estimate_sheet(
    found: Counterfactual,
    *,
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    typed: Callable[[str], str] = str,
) -> Sheet:
    """The verdict, then all that it was made of.

    `typed` turns settings that a sentence names into what a reader would type.
    """
    metrics = metric_labels(found)
    value = metrics[CLICKS][0]
    figure, by_metric = _by_metric(found)
    sections = [
        _by_estimator(found, value, figure),
        by_metric,
        _by_part(found, value),
        support_section(found),
        curve_section(found, value),
        moves_section("Queries that gain most", [move for move in found.moves if move.gain > 0]),
        moves_section("Queries that lose most", [move for move in found.moves if move.gain < 0]),
    ]
    new, old = (ends_kept(name, LONGEST_NAME) for name in (found.new, found.old))
    old = "what was logged" if old == "logged" else old
    told = {
        **(settings or {}),
        "sessions": found.sessions,
        "queries": found.queries,
        "curve": found.curve_source,
        **({} if found.events is None else {"events": found.events}),
    }
    return Sheet(
        f"Would {new} earn more than {old}?",
        summary=" · ".join(
            [
                counted(found.sessions, "sessions"),
                counted(found.queries, "queries"),
                f"examination {found.curve_source}",
            ]
        ),
        verdict=tuple(typed(each) for each in found.verdict.sentences),
        sections=tuple(each for each in sections if each is not None),
        explanations=_explanations(list(metrics.values()), found),
        settings=told,
        command=command,
        numbers="estimate.json",
    )


def write_estimate(found: Counterfactual, sheet: Sheet, directory: Path) -> list[Path]:
    """`report.html` with its tables and figures, and `estimate.json`."""
    directory.mkdir(parents=True, exist_ok=True)
    numbers = directory / "estimate.json"
    write_text(numbers, found.to_json())
    return [*sheet.write(directory), numbers]


def show_estimate(sheet: Sheet, console: Console, files: Sequence[Path] = ()) -> None:
    """Print the verdict, and under it the tables that are short; the others are in the page."""
    replace(sheet, sections=()).show(console)
    first, *others = sheet.sections
    brief = [each for each in others if each.title in (WHERE, PARTS, SUPPORT)]
    replace(sheet, verdict=(), sections=(first, *brief)).show(console, files)


def _row(label: str, each: Estimate | None) -> Row:
    if each is None:
        return Row(label, ("refused", None, None, None, None))
    return Row(label, cells_of(each), strong=label == estimator_label(MAIN))


def _table(rows: Sequence[Row], corner: str, remark: str = "") -> Table:
    return Table(
        tuple(name.capitalize() for name in COLUMNS),
        tuple(rows),
        corner,
        main="Difference",
        remark=remark,
    )


def _by_estimator(found: Counterfactual, value: str, metrics: Exhibit) -> Section:
    rows = [_row(*each) for each in rows_by(found, "estimator")]
    caption = (
        f"New minus old in {in_a_sentence(value)}, with 95% intervals over queries. Right of the "
        "line the new ranker earns more. Estimators assume different things (see below); where "
        "they agree, only the curve, on which all stand, is left to doubt."
    )
    figure, heading = (
        _figure("estimators", found, "estimator", caption),
        heading_by(found, "estimator"),
    )
    return Section(
        heading,
        table=_table(rows, "Estimator"),
        file="table.md",
        exhibits=(figure, metrics),
        note=" ".join(refusals(found.refused)),
    )


def _figure(name: str, found: Counterfactual, by: By, caption: str) -> Exhibit:
    draw = partial(interval_figure, intervals_by(found, by), heading_by(found, by))
    return Exhibit(name, draw, caption)


def _by_metric(found: Counterfactual) -> tuple[Exhibit, Section]:
    """The main estimate of every metric, as a figure and as a table."""
    caption = (
        "The same by metrics that look at where clicks fall, all per session, by the doubly robust "
        "estimate."
    )
    rows = [_row(*each) for each in rows_by(found, "metric")]
    table = _table(rows, "Doubly robust, per session")
    return _figure("metrics", found, "metric", caption), Section(
        WHERE, table=table, file="table.md"
    )


def _by_part(found: Counterfactual, value: str) -> Section | None:
    rows = [_row(*each) for each in rows_by(found, "part")]
    if not rows:
        return None
    caption = (
        f"New minus old in {in_a_sentence(value)}, doubly robust. Head, middle and tail are "
        "the queries of a third of the sessions each, the most frequent first. What a document is "
        "worth is taken to be the same in every part."
    )
    remark = (
        "One interval in twenty is wrong: of many parts, some look different by chance."
        if len(rows) > 3
        else ""
    )
    return Section(
        PARTS,
        table=_table(rows, f"{value}, doubly robust", remark),
        file="table.md",
        exhibits=(_figure("parts", found, "part", caption),),
    )


def _explanations(
    metrics: Sequence[tuple[str, str]], found: Counterfactual
) -> tuple[Explanation, ...]:
    shown = {each.estimator for each in found.estimates} | set(found.refused)
    return (
        Explanation(
            "The verdict",
            "Better or worse where the interval of the doubly robust difference lies on one side "
            "of zero. Otherwise, and where too little of what the new ranker shows was ever "
            "displayed, or the log contradicts the curve and the sign hangs on it, it cannot be "
            "told.",
        ),
        Explanation(
            "Estimators",
            terms=[text for name, text in ESTIMATORS.items() if name in shown],
        ),
        Explanation("Metrics", terms=metrics),
        Explanation(
            "Intervals",
            "Queries are drawn anew with replacement, both rankings on the same sessions, and the "
            "model of relevance is fitted again each time; every query is judged by a model that "
            "was fitted to others. What is not known of the curve widens them, where it says how "
            "sure it is.",
        ),
        Explanation(
            "What it cannot show",
            "Clicks are what is counted: whether a clicked result satisfied, or how users would "
            "change their ways once all results are other ones, no log tells. An experiment does.",
        ),
        Explanation(
            "Queries that move",
            "The gain of a single query rests on few clicks and on the model: these are for "
            "reading, not for counting. Each document stands with how often the log displayed it "
            "for this query, and how often it was clicked.",
        ),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
