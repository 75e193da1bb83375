"""What to do about a new ranker, from what was estimated: better, worse, or what would tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dualrank.certainty import NORMAL_95, SURELY, alarm_errors, seen
from dualrank.decisions.click_metrics import CLICKS
from dualrank.decisions.curve_checks import Contradiction
from dualrank.decisions.curve_choice import HARVESTED
from dualrank.decisions.estimates_of_value import AFFINE, DOUBLY_ROBUST
from dualrank.sentences import counted, listed

if TYPE_CHECKING:
    from dualrank.decisions.counterfactual import Counterfactual, Estimate

Decision = Literal["better", "worse", "cannot tell"]
MOST_SESSIONS = 1e9
HEAVY = 0.1
"""The weight of ten clicks beyond which an estimate hangs on them."""


DEPENDENT = (
    "Cannot tell: users of this log stop after a click, so that what is clicked depends on what "
    "stands above, and no estimate by position is right.",
    "Compare by interleaving (dualrank interleave), and train with method stopping, or auto.",
)


@dataclass(frozen=True)
class Verdict:
    """The decision, and the sentences that say it, the most important first."""

    decision: Decision
    sentences: tuple[str, ...]


def verdict_of(found: Counterfactual) -> Verdict:
    """The decision by clicks per session, or what stands against one."""
    main = found[CLICKS]
    doubts = _doubts(found, main)
    if not found.least_support.is_enough:
        return Verdict("cannot tell", (*_unsupported(found), *doubts))
    if found.clicks_depend:
        return Verdict("cannot tell", (*DEPENDENT, *doubts))
    # Documents that moved vouch for the curve that they gave, whatever features say.
    if found.contradicted and found.curve_source != HARVESTED:
        said = f"Cannot tell: {_in_words(found.contradicted[0])}."
        instead = (
            f"With another curve the difference is another one: {_otherwise(found)}. Give the "
            "curve that documents at several positions show (propensity='harvested'), or compare "
            "by interleaving (dualrank interleave)."
        )
        return Verdict("cannot tell", (said, instead, *doubts[1:]))
    # The affine estimate is right where users trust the top, the other one where they do not.
    shown = _affine(found) or main
    if shown.sign != main.sign:
        return Verdict("cannot tell", (*_trusted_or_not(found, main, shown), *doubts))
    if main.sign:
        decision: Decision = "better" if main.sign > 0 else "worse"
        first = f"{found.new} is {decision} than {found.old}: {_gain(found, shown)}."
        return Verdict(decision, (first, *doubts))
    return Verdict(
        "cannot tell",
        (
            f"Cannot tell whether {found.new} is better than {found.old}: {_gain(found, shown)}.",
            _what_would(found, shown),
            *doubts,
        ),
    )


def _affine(found: Counterfactual) -> Estimate | None:
    """The estimate that takes trust in the top off: there only where the log shows such trust."""
    here = (each for each in found.estimates if each.metric == CLICKS and not each.part)
    return next((each for each in here if each.estimator == AFFINE), None)


def _trusted_or_not(found: Counterfactual, main: Estimate, trusting: Estimate) -> tuple[str, str]:
    """What either estimate says where they do not agree that there is a difference, and which."""
    return (
        f"Cannot tell whether {found.new} is better than {found.old}: {_gain(found, trusting)}, if "
        "users click what stands on top because it stands there, as they seem to; "
        f"{_gain(found, main)}, if they do not.",
        "Compare by interleaving (dualrank interleave).",
    )


def _gain(found: Counterfactual, main: Estimate) -> str:
    relative = f" ({main.difference / main.old:+.1%})" if main.old > 0 else ""
    return (
        f"{main.difference:+.4f} {found.unit} per session{relative}, 95% interval "
        f"{main.low:+.4f} to {main.high:+.4f}"
    )


def _unsupported(found: Counterfactual) -> tuple[str, str]:
    support = found.least_support
    return (
        f"Cannot tell: {support.missing:.0%} of what {support.ranking} shows, as far as it would "
        f"be looked at, was never displayed ({1 - support.top:.0%} of what it shows on top): "
        "clicks say nothing about it.",
        "Let it order only what was displayed (only_displayed=True), or show "
        "its results to some users by interleaving (dualrank interleave).",
    )


def _what_would(found: Counterfactual, main: Estimate) -> str:
    """How many sessions would tell a difference of the size that was found."""
    half = (main.high - main.low) / 2
    size = abs(main.difference)
    # Five times in six: where it is an interval's half and one more standard error from 0.
    reach = half * seen(NORMAL_95) / NORMAL_95
    needed = found.sessions * (reach / size) ** 2 if size > 0 else float("inf")
    if not needed < MOST_SESSIONS:
        return "The two are so close that no log would tell them apart."
    return (
        f"A difference of this size would show in a log of some {_rounded(needed)} sessions, with "
        "queries in proportion, or sooner by interleaving (dualrank interleave)."
    )


def _rounded(number: float) -> str:
    digits = max(len(str(int(number))) - 2, 0)
    return f"{round(number, -digits):,.0f}"


def _otherwise(found: Counterfactual) -> str:
    half, more = found.otherwise["0.5"], found.otherwise["1.5"]
    return (
        f"{half:+.4f} {found.unit} per session had examination fallen off half as fast, "
        f"{more:+.4f} had it fallen off one and a half times as fast"
    )


def _in_words(against: Contradiction) -> str:
    if against.witness == "features":
        return (
            f"at position {against.position} there are {against.factor:.2f} times ({SURELY} "
            f"interval {against.low:.2f}–{against.high:.2f}) the clicks that the curve and the "
            "relevance of documents by their features explain, so that one of the two is wrong"
        )
    return (
        f"{against.witness} show that position {against.position} is examined "
        f"{against.factor:.2f} times ({SURELY} interval {against.low:.2f}–{against.high:.2f}) as "
        "often as the curve says"
    )


def _doubts(found: Counterfactual, main: Estimate) -> list[str]:
    """What to mind, whatever the decision."""
    doubts = []
    for against in found.contradicted:
        said = _in_words(against)
        doubts.append(f"{said[0].upper()}{said[1:]}; {_otherwise(found)}.")
    if abs(found.disagreement) > alarm_errors():
        doubts.append(
            "Clicks and the model of relevance disagree by "
            f"{abs(found.disagreement):.1f} standard errors: the estimate goes "
            f"{found.mended:.0%} of the way to what clicks say."
        )
    if _affine(found) is not None:
        doubts.append(
            "Users seem to click what stands on top because it stands there: the affine estimate, "
            "which alone takes that off, must agree with the doubly robust one, and its interval "
            "takes what it takes off to be known."
        )
    heaviest = max(found.support, found.support_of_old, key=lambda each: each.heaviest)
    if heaviest.heaviest > HEAVY:
        doubts.append(
            f"Ten clicks carry {heaviest.heaviest:.0%} of the weight of inverse propensity under "
            f"{heaviest.ranking}: a few users decide."
        )
    signs = {
        each.sign
        for each in found.estimates
        if each.metric == CLICKS and not each.part and each.estimator != DOUBLY_ROBUST
    } - {0}
    if main.sign and -main.sign in signs:
        doubts.append("Another estimator says the opposite: look at all of them.")
    if not found.curve_is_counted:
        doubts.append("Nothing says how sure the curve is; the intervals take it to be right.")
    doubts += found.notes
    by = (
        "by clicks alone: whether what is clicked also satisfies, they do not show"
        if found.events is None
        else f"by what {listed(found.events)} are worth"
    )
    doubts.append(
        f"Judged on {counted(found.queries, 'queries')} in {counted(found.sessions, 'sessions')}, "
        f"{by}."
    )
    return doubts
