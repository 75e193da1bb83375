"""Does dual learning find on this log what plain learning does not?

Two rankers are trained on part of the queries, one on clicks as they are and one by dual learning,
and both predict where the clicks on the other queries fell, with position accounted for (see
`evaluation.click_check`): P(k | a click) = softmax_k(b f(x_k) + φ_k), where b and φ are fitted
to either ranker's scores. Where joint learning is right its ranker knows more of relevance and less
of position, and leads; where it has taken one for the other, or has learned noise, it does not.
"""

from __future__ import annotations

from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question
from dualrank.evaluation.click_check import CLEAR

NAME = "joint learning"


def joint_learning(facts: LogFacts) -> Point:
    """The lead of dual learning over naive learning in predicting held-out clicks."""
    trained = facts.trained
    if isinstance(trained, str):
        return Question(NAME).answer("not measured", f"{trained[0].upper()}{trained[1:]}.")
    lead = trained.lead
    numbers = {
        "lead": lead.gain,
        "standard_error": lead.error,
        "lead_in_standard_errors": lead.in_errors,
        "held_out_queries": lead.queries,
        "held_out_clicks": lead.clicks,
    }
    asked = Question(NAME, numbers)
    led = (
        f"On {lead.clicks:,} held-out clicks joint learning leads naive learning by "
        f"{lead.in_errors:+.1f} standard errors"
    )
    if lead.is_clear and not trained.tells:
        return asked.answer(
            "warning",
            f"{led}; but neither predicts them better than position alone, so that there is "
            "nothing to lead in.",
            "See what is said of the features.",
        )
    if lead.is_clear and facts.dependence.ends_sessions:
        return asked.answer(
            "warning",
            f"{led}; but a click mostly ends the session, and the comparison presumes clicks that "
            "depend on their own position and document only.",
            "Do not rely on a curve by position here: train with method stopping, or auto.",
        )
    if lead.is_clear:
        return asked.answer("good", f"{led}: this log supports the correction.")
    return asked.answer(
        "warning",
        f"{led}, where {CLEAR:g} would be clear: this log does not show that joint learning "
        "is right.",
        "Do not rely on dual learning with this log: train with auto, or use harvested "
        "propensities where positions are connected.",
    )


def supported(facts: LogFacts) -> bool:
    """Whether held-out clicks show that joint learning is right."""
    return not isinstance(facts.trained, str) and facts.trained.supports
