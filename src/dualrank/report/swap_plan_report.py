"""A plan of swaps for people: the designs side by side, which swaps, and precision against cost."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dualrank.propensity.swap_plan import PlannedDesign, SwapPlan
from dualrank.propensity.swap_plan_card import draw_precision, drawn_designs
from dualrank.propensity.swap_words import as_percent, in_days, rounded
from dualrank.report.drawing import SIZE, new_figure
from dualrank.report.sheet import Exhibit, Explanation, Section, Sheet
from dualrank.report.table import Row, Table
from dualrank.storage import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def swap_plan_sheet(plan: SwapPlan, name: str, command: str = "") -> Sheet:
    """What to swap on the traffic of a log of this name."""
    best = plan.recommended
    which = () if best is None or len(best.shares) < 2 else (_which(plan, best),)
    caption = (
        "How far the widest 95% interval of the curve reaches, against the clicks that users lose "
        "until then" + (", at most" if plan.costs_at_most else "") + "; the mark is where the plan "
        "ends."
    )
    exhibits = (Exhibit("precision", partial(precision_figure, plan), caption),)
    return Sheet(
        f"Swaps planned on {name}",
        summary=(
            f"{plan.sessions_logged:,} sessions, {plan.clicks_per_session:.2f} clicks each"
            + (
                ""
                if plan.sessions_per_day is None
                else f", {rounded(plan.sessions_per_day)} sessions a day"
            )
        ),
        verdict=(plan.summary, *_notes(plan)),
        sections=(
            Section("Designs", table=designs_table(plan)),
            Section("Precision against cost", exhibits=exhibits),
            *which,
        ),
        explanations=_explanations(plan),
        command=command,
        numbers="plan.json",
    )


def write_swap_plan(plan: SwapPlan, directory: Path, sheet: Sheet) -> list[Path]:
    """`report.html`, `figure-precision.svg` and `plan.json`."""
    written = [*sheet.write(directory), directory / "plan.json"]
    write_text(written[-1], json.dumps(plan.to_dict(), indent=1, allow_nan=False) + "\n")
    return written


def designs_table(plan: SwapPlan) -> Table:
    """One design per row, the recommended one bold."""
    timed = plan.sessions_per_day is not None
    rows = []
    for design in plan.designs:
        best = design is plan.recommended
        days = ["" if design.days is None else in_days(design.days)] * timed
        cells: list[str | None] = ["no number is enough", *[""] * (timed + 2), "", design.method]
        if design.ends:
            cells = [
                rounded(design.sessions),
                *days,
                rounded(plan.share * design.sessions),
                _clicks(design.lost),
                f"{design.lost_per_thousand:.2g}",
                design.method,
            ]
        rows.append(Row(f"{design.name} ←" * best or design.name, tuple(cells), strong=best))
    lost = "clicks lost" + " (at most)" * plan.costs_at_most
    columns = ("sessions", *["time"] * timed, "swapped", lost, "per 1,000 sessions", "read by")
    return Table(columns, tuple(rows), corner="design", remark=_remark(plan))


def precision_figure(plan: SwapPlan) -> Figure | None:
    """Precision of the worst position against clicks lost, a line for each design that ends."""
    drawn = drawn_designs(plan)
    if not drawn:
        return None
    figure, (ax,) = new_figure(1, height=1.15 * SIZE[1], width=1.25 * SIZE[0])
    draw_precision(ax, plan, drawn)
    return figure


def _which(plan: SwapPlan, best: PlannedDesign) -> Section:
    """The exchanges of the recommended design."""
    rows = []
    for (name, share), reached in zip(best.shares.items(), best.reached[1:], strict=True):
        swapped = rounded(share * best.sessions)
        above, below = name.split("-")
        cells = (f"{share:.3%}", swapped, f"±{reached:.1%}")
        rows.append(Row(f"{above} with {below}", cells))
    columns = ("of sessions", "swapped", "the lower one is known within")
    return Section(
        f"Which swaps: {best.name}",
        "In a session with a list that is too short for its swap, nothing is swapped.",
        table=Table(columns, tuple(rows), corner="swap"),
    )


def _remark(plan: SwapPlan) -> str:
    """What the table's numbers mean."""
    return (
        f"Sessions: all traffic, of which {as_percent(plan.share)} see another order. ←: "
        "recommended, the least product of sessions and clicks lost."
        if plan.recommended is not None
        else f"Sessions: all traffic, of which {as_percent(plan.share)} see another order."
    )


def _notes(plan: SwapPlan) -> list[str]:
    notes = []
    best = plan.recommended
    if best is not None:
        notes.append(f"Then estimate with {best.method}.")
    if plan.costs_at_most:
        notes.append(
            "The log does not tell the curve, so the worst is assumed, and costs are at most these."
        )
    if plan.cut is not None:
        notes.append(plan.cut)
    return notes


def _explanations(plan: SwapPlan) -> tuple[Explanation, ...]:
    precision = as_percent(plan.precision)
    return (
        Explanation(
            "What precision means",
            f"A curve is known within ±{precision} where the 95% interval of every position goes "
            f"up by no more than {precision} of the estimate, and as far down in ratio: the "
            "interval of dualrank propensity, had other queries been asked.",
        ),
        Explanation(
            "What it costs",
            "A worse result on top is clicked less. Clicks lost are those of the documents that "
            "the log shows at both positions, as they would be clicked at the other one, by a "
            + (
                "curve that makes swaps as dear as the log allows."
                if plan.costs_at_most
                else "curve that was harvested from documents that moved by themselves."
            ),
        ),
        Explanation(
            "How to serve it",
            "In every session draw a number; with the shares given, exchange two results before "
            "the page is rendered, and log what was shown, at the positions where it was shown. No "
            "column needs to say which sessions were swapped, except for full shuffles: there the "
            "shuffled sessions alone are given to the estimator.",
        ),
        Explanation(
            "What is not counted",
            "Documents that move by themselves tell something besides; it is not added. Traffic is "
            "taken to be like that of the log, and users to examine by position.",
        ),
    )


def _clicks(lost: float) -> str:
    return rounded(lost) if abs(lost) >= 1 else f"{lost:.1g}"
