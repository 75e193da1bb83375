"""What to do with a log, from what was found.

Two ways lead from clicks to examination. Harvesting needs positions that documents connect, and
nothing else. Joint learning needs features that tell relevance from position, which held-out clicks
can show. Where both are open and contradict each other, harvesting is believed: it compares each
document with itself. Where neither is, some swaps open the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from dualrank.diagnostics.point import Point
from dualrank.propensity.swap_plan import SwapPlan

Verdict = Literal[
    "fit for joint learning", "use harvested propensities", "collect some swaps first"
]
JOINT: Verdict = "fit for joint learning"
HARVESTED: Verdict = "use harvested propensities"
SWAPS: Verdict = "collect some swaps first"

UNSEEN = (
    "No clicks show whether what attracts them also satisfies (where the log has purchases or long "
    "stays in a column, learn from those as clicks), nor what documents are worth that were never "
    "displayed."
)


SINGLE = (
    "Every list shows one document: methods that compare documents of a list, auto among them, "
    "learn nothing here, and a ranker is trained with method stopping."
)


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and what else to mind."""

    verdict: Verdict
    reasons: tuple[str, ...]


Planner = Callable[[], SwapPlan | None]


def judge(points: Mapping[str, Point], plan_swaps: Planner = lambda: None) -> Judgement:
    """The verdict that the points lead to.

    `plan_swaps` is asked only where swaps would help.
    """
    verdict, reasons = _decide(points, plan_swaps)
    single = [] if points["sample"].numbers.get("compares_documents", True) else [SINGLE]
    return Judgement(verdict, (*reasons, *single, *_cautions(points), UNSEEN))


def _decide(points: Mapping[str, Point], plan_swaps: Planner) -> tuple[Verdict, list[str]]:
    connected = points["connectivity"].numbers["can_harvest"]
    joint, curves = points["joint learning"], points["curves"]
    contradicted = curves.status in ("warning", "failed")
    confounded = points["confounding"].status == "warning"
    unproven = "Held-out clicks do not show that joint learning is right."
    if confounded:
        unproven = (
            "Joint learning takes what the logging ranker knew for examination; train with "
            "method grounded, which tells the two apart, or auto."
        )
    if points["sample"].numbers["clicks"] == 0:
        return SWAPS, ["There is no click in the log, so there is nothing to learn from yet."]
    if points["sample"].status == "failed":
        small = "The log is too small for any correction; collect more sessions."
        while_you_do = "Swap some results while you do."
        return SWAPS, [small] if connected else [small, _planned(plan_swaps()) or while_you_do]
    if points["independent clicks"].numbers["ends_sessions"]:
        partial = points["independent clicks"].numbers.get("lists_have_gaps")
        return SWAPS, [
            "A click mostly ends the session, so that no weight by position, learned or harvested, "
            "is right; "
            + (
                "log whole lists, so that method stopping can learn from what was read."
                if partial
                else "train with method stopping, which learns from what was read, or auto."
            )
        ]
    against = _against_one_curve(points)
    if connected and (contradicted or confounded or against or joint.status != "good"):
        if contradicted:
            why = "Dual learning finds another curve than the one they show."
        elif joint.status == "not measured":
            why = "Whether joint learning would find the same was not asked."
        else:
            why = against or unproven
        todo = (
            "Train with method ipw and the harvested curve, or with method auto, and compare them."
        )
        return HARVESTED, ["Documents seen at several positions connect all of them.", why, todo]
    if against is not None:
        return SWAPS, [against]
    if joint.status == "good" and not confounded:
        return JOINT, [
            "Held-out clicks are better predicted with joint learning than without: train with "
            "method likelihood, or auto.",
            _confirmed(connected, curves),
        ]
    return SWAPS, [
        "Documents seen at several positions do not connect all of them firmly enough.",
        "Without features joint learning cannot be tried."
        if joint.status == "not measured"
        else unproven,
        *filter(None, [_planned(plan_swaps())]),
    ]


def _planned(plan: SwapPlan | None) -> str:
    """What to swap and for how long, where the log tells."""
    if plan is None or plan.recommended is None:
        return ""
    return f"{plan.summary[:-1]}: see plan_swaps(log, precision={plan.precision:g})."


def _confirmed(connected: bool, curves: Point) -> str:
    """What the harvested curve says of the learned one."""
    if not connected:
        return "No document was seen at enough positions to confirm its curve independently."
    if curves.status == "not measured":
        return "The harvested curve is not known well enough to confirm its curve."
    return "Its curve agrees with the harvested one."


def _against_one_curve(points: Mapping[str, Point]) -> str | None:
    """Why no one curve is right for this log, if there is a reason."""
    if points["independent clicks"].numbers.get("reads_from_the_top"):
        return (
            "Users read from the top and some leave after a click, so that a curve by position "
            "takes part of that for examination; train with method stopping, or auto."
        )
    if points["drift"].status == "failed":
        return (
            "What position does differs between parts of the log, so that one curve is wrong for "
            "most of it; give the column that tells them apart (a context), with which auto learns "
            "a curve for each, or train on one part."
        )
    return None


def _cautions(points: Mapping[str, Point]) -> list[str]:
    words = {
        "features": "nothing shows that the features tell documents apart",
        "independent clicks": "clicks of a session depend on each other",
        "trust in the top": "users trust the top beyond examining it",
        "sample": "corrections may overfit",
        "leakage": "a feature may give away the position",
        "drift": "examination differs between parts of the log",
        "traffic": "some clicks look like a machine's",
    }
    bad = {name for name, point in points.items() if point.status in ("warning", "failed")}
    minded = [said for name, said in words.items() if name in bad]
    if not minded:
        return []
    listed = " and ".join(filter(None, [", ".join(minded[:-1]), minded[-1]]))
    return [f"Mind that {listed}."]
