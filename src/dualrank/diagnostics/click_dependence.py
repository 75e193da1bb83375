"""Are the clicks of a session independent, as the position-based model has it?

What is counted, and when it is taken to matter, is in `clicks.dependence`.
"""

from __future__ import annotations

from typing import Any

from dualrank.clicks.dependence import ERRORS, NOTABLE
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question, worst

NAME = "independent clicks"


def click_dependence(facts: LogFacts) -> Point:
    """Sessions with two clicks, after the first rank and further down."""
    found = facts.dependence
    first, further = found.after_the_first, found.further_down
    numbers: dict[str, Any] = {
        "after_the_first": first.to_dict(),
        "further_down": further.to_dict(),
        "ends_sessions": found.ends_sessions,
        "reads_from_the_top": found.reads_from_the_top,
        "lists_have_gaps": found.partial,
    }
    asked = Question(NAME, numbers)
    if first.status == further.status == "not measured":
        return asked.answer(
            "not measured",
            f"Only {first.expected + further.expected:.1f} sessions are expected to click twice on "
            "a list that others saw too, too few to compare.",
        )
    said = " and ".join(
        f"{ratio.value:.2f} times (± {ERRORS * ratio.error:.2f}) as often {where}"
        for ratio, where in (
            (first, "after one on the first result"),
            (further, "after one further down"),
        )
        if ratio.status != "not measured"
    )
    said = f"Sessions click a second time {said} as independent clicks would"
    status = worst(first.status, further.status)
    if status == "good":
        measured = [ratio for ratio in (first, further) if ratio.status != "not measured"]
        if any(ratio.is_clear for ratio in measured):
            return asked.answer(
                status, f"{said}: too little to matter for the position-based model."
            )
        least = max(max(ratio.shows for ratio in measured), NOTABLE - 1)
        return asked.answer(
            status,
            f"{said}: no sign against the position-based model, where one of ± {least:.2f} would "
            "have been seen.",
        )
    habits = []
    if first.status in ("warning", "failed") and first.value < 1:
        habits.append("users stop after a click, as in the cascade model")
    elif further.status in ("warning", "failed") and further.value < 1:
        habits.append("users stop after a click further down")
    if further.status in ("warning", "failed") and further.value > 1:
        habits.append(
            "who clicks further down has read more of the list than others, from the top or out "
            "of habit"
        )
    elif first.status in ("warning", "failed") and first.value > 1:
        habits.append("some users click much and others little")
    models = "Compare click models of other habits, such as dbn and ubm, give"
    if found.partial:
        models = "Log whole lists, which tell how users read (dbn, ubm, stopping); give"
    return asked.answer(
        status,
        f"{said}: {', and '.join(habits)}, so that how likely a rank is seen does not depend on "
        "the rank alone.",
        f"{models} contexts that tell users apart, and read an examination curve as the average "
        "over these lists.",
    )
