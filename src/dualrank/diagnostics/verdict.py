"""What to do with a log, from what was found.

Two ways lead from clicks to examination. Harvesting needs positions that documents connect, and
nothing else. Joint learning needs features that tell relevance from position, which held-out clicks
can show. Where both are open and contradict each other, harvesting is believed: it compares each
document with itself. Where neither is, some swaps open the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dualrank.diagnostics.point import Point

Verdict = Literal[
    "fit for joint learning", "use harvested propensities", "collect some swaps first"
]
JOINT: Verdict = "fit for joint learning"
HARVESTED: Verdict = "use harvested propensities"
SWAPS: Verdict = "collect some swaps first"


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and what else to mind."""

    verdict: Verdict
    reasons: tuple[str, ...]


def judge(points: Mapping[str, Point]) -> Judgement:
    """The verdict that the points lead to."""
    connected = points["connectivity"].numbers["can_harvest"]
    joint, curves = points["joint learning"], points["curves"]
    ends_sessions = points["independent clicks"].numbers["ends_sessions"]
    learns = joint.status == "good"
    contradicted = curves.status in ("warning", "failed")
    reasons: list[str] = []
    verdict: Verdict
    if points["sample"].numbers["clicks"] == 0:
        verdict = SWAPS
        reasons.append("There is no click in the log, so there is nothing to learn from yet.")
    elif points["sample"].status == "failed":
        verdict = SWAPS
        reasons.append("The log is too small for any correction; collect more sessions.")
        if not connected:
            reasons.append("Swap some results while you do.")
    elif ends_sessions:
        verdict = SWAPS
        reasons.append(
            "A click mostly ends the session, so that no weight by position, learned or harvested, "
            "is right; stay with the naive ranker until swaps show what a curve is worth here."
        )
    elif connected and (contradicted or not learns):
        verdict = HARVESTED
        reasons.append("Documents seen at several positions connect all of them.")
        if contradicted:
            reasons.append("Dual learning finds another curve than the one they show.")
        elif joint.status == "not measured":
            reasons.append("Whether joint learning would find the same was not asked.")
        else:
            reasons.append("Held-out clicks do not show that joint learning is right.")
    elif learns:
        verdict = JOINT
        reasons.append("Held-out clicks are better predicted with dual learning than without.")
        reasons.append(
            "Its curve agrees with the harvested one."
            if connected
            else "No document was seen at enough positions to confirm its curve independently."
        )
    else:
        verdict = SWAPS
        reasons.append(
            "Documents seen at several positions do not connect all of them firmly enough."
        )
        reasons.append(
            "Without features joint learning cannot be tried."
            if joint.status == "not measured"
            else "Held-out clicks do not show that joint learning is right."
        )
    reasons += _cautions(points)
    return Judgement(verdict, tuple(reasons))


def _cautions(points: Mapping[str, Point]) -> list[str]:
    words = {
        "independent clicks": "clicks of a session depend on each other",
        "trust in the top": "users trust the top beyond examining it",
        "sample": "corrections may overfit",
        "drift": "examination differs between parts of the log",
        "traffic": "some clicks look like a machine's",
    }
    minded = [said for name, said in words.items() if points[name].status in ("warning", "failed")]
    if not minded:
        return []
    listed = " and ".join(filter(None, [", ".join(minded[:-1]), minded[-1]]))
    return [f"Mind that {listed}."]
