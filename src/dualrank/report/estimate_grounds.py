"""What an estimate stands on: what the log displayed, and the curve of examination."""

from __future__ import annotations

from functools import partial

from dualrank.certainty import SURELY
from dualrank.decisions.counterfactual import Counterfactual
from dualrank.decisions.estimate_words import ends_kept, in_a_sentence
from dualrank.decisions.support import MOST_MISSING
from dualrank.decisions.verdict_of_estimate import HEAVY
from dualrank.diagnostics.point import Point
from dualrank.report.figures import FEW, estimates_figure
from dualrank.report.sheet import Exhibit, Section
from dualrank.report.table import Row, Table
from dualrank.showing.interval_rows import signed
from dualrank.showing.visible import visible

SUPPORT = "What the log can tell"
FEW_CLICKS = 100
"""Of equal weight: of fewer, each has more than a hundredth of all."""


def support_section(found: Counterfactual) -> Section:
    """How much of what both rankings show the clicks of the log can tell anything about."""
    new, old = found.support, found.support_of_old
    of_new, of_old = ends_kept(new.ranking), ends_kept(old.ranking)
    points = (
        Point(
            "first results",
            "good" if 1 - min(new.top, old.top) <= MOST_MISSING else "warning",
            {},
            f"What {of_new} puts first the log has displayed, at some position, in {new.top:.0%} "
            f"of sessions; what {of_old} puts first, in {old.top:.0%}.",
        ),
        Point(
            "all that would be examined",
            "good" if found.least_support.is_enough else "failed",
            {},
            f"{new.examined:.0%} of it was displayed under {of_new}, {old.examined:.0%} under "
            f"{of_old}. About the rest no click can tell; below {1 - MOST_MISSING:.0%}, estimates "
            "from clicks are refused.",
        ),
        Point(
            "effective clicks",
            "good" if min(new.effective_clicks, old.effective_clicks) >= FEW_CLICKS else "warning",
            {},
            f"{new.clicks:,.0f} clicks tell as much as {new.effective_clicks:,.0f} of one weight "
            f"would about {of_new}, as {old.effective_clicks:,.0f} about {of_old}. They are few of "
            "many where a ranking puts on top what the log displayed far down.",
        ),
        Point(
            "heaviest clicks",
            "good" if max(new.heaviest, old.heaviest) <= HEAVY else "warning",
            {},
            f"Ten clicks carry {new.heaviest:.1%} of the weight of inverse propensity under "
            f"{of_new}, {old.heaviest:.1%} under {of_old}. Where it is more than {HEAVY:.0%}, a "
            "few users decide.",
        ),
    )
    return Section(SUPPORT, points=points)


def curve_section(found: Counterfactual, value: str) -> Section:
    """Where the curve is from, what the log says against it, and what another one would change."""
    main, unit = found["clicks"], in_a_sentence(value)
    sure = (
        "the intervals count what is not known of it"
        if found.curve_is_counted
        else "nothing says how sure it is, and the intervals take it to be right"
    )
    text = f"The examination that everything stands on was {found.curve_source}; {sure}. "
    text += " ".join(_against(found)) or "The log says nothing against it."
    speeds = {"0.5": "half as fast", "1.5": "one and a half times as fast"}
    rows = [Row("as the curve says", (signed(main.difference),), strong=True)]
    rows += [
        Row(speeds.get(power, f"{power} times as fast"), (signed(gap),))
        for power, gap in found.otherwise.items()
    ]
    remark = (
        "Where the sign changes, the verdict hangs on the curve."
        if any(gap * main.difference < 0 for gap in found.otherwise.values())
        else "The sign stays: the verdict does not hang on how fast examination falls off."
    )
    table = Table(
        (f"Difference in {unit}",), tuple(rows), "Had examination fallen off", remark=remark
    )
    contexts = dict(list(found.curve.by_context.items())[: FEW - 1])
    curves = {"all sessions" if contexts else "examination": found.curve}
    curves |= {visible(ends_kept(name, 24)): curve for name, curve in contexts.items()}
    caption = (
        "How likely a position is examined, relative to the first. Bars are 95% intervals, where "
        "they are known."
    )
    figure = Exhibit("curve", partial(estimates_figure, curves), caption)
    return Section("What it hangs on: the curve", text, table=table, exhibits=(figure,))


def _against(found: Counterfactual) -> list[str]:
    """What the log says against the curve, a sentence for each witness."""
    said = []
    for each in found.contradicted:
        how = f"{each.factor:.2f} times ({SURELY} interval {each.low:.2f}–{each.high:.2f})"
        if each.witness == "features":
            said.append(
                f"At position {each.position} there are {how} the clicks that it and the relevance "
                "told by features explain."
            )
        else:
            where = f"position {each.position} is examined {how}"
            said.append(f"By {each.witness}, {where} as often as it says.")
    return said
