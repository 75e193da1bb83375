"""What a comparison of arms comes to, in sentences."""

from __future__ import annotations

from dualrank.decisions.preference import LEAST, Comparison, Preference
from dualrank.sentences import counted, shortened, start_of


def verdict(found: Comparison) -> list[str]:
    """The most important sentence first; one or two for each pair of arms."""
    sentences = []
    ahead = {arm: sum(pair.better == arm for pair in found.pairs) for arm in found.arms}
    if len(found.arms) > 2:
        best = [arm for arm, wins in ahead.items() if wins == len(found.arms) - 1]
        sentences.append(
            f"{_name(best[0])} is better than every other arm."
            if best
            else "No arm is better than all others, as far as can be told."
        )
    for pair in found.pairs:
        sentences += pair_verdict(pair, found)
    return sentences


def pair_verdict(pair: Preference, found: Comparison) -> list[str]:
    """Who is better, by how much and how sure, or what would tell."""
    if pair.better is None:
        return [_open(pair, found)]
    other = pair.second if pair.better == pair.first else pair.first
    sign = 1 if pair.better == pair.first else -1
    when = "" if pair.decided_on is None else f", decided on {pair.decided_on}"
    where = "" if pair.beyond_queries else " on these queries"
    said = (
        f"{_name(pair.better)} is better than {_name(other)}{where}: {sign * pair.mean:+.3g} "
        f"{found.unit} a session ({_interval(pair, sign)}){when}."
    )
    return [said] if pair.beyond_queries else [said, _elsewhere(pair, sign)]


def _elsewhere(pair: Preference, sign: int) -> str:
    """Why these queries do not speak for others."""
    if pair.low_over_queries is None or pair.high_over_queries is None:
        why = "so few queries, or a few so frequent ones, do not speak for others"
    else:
        low, high = sorted((sign * pair.low_over_queries, sign * pair.high_over_queries))
        why = f"where queries are taken for a sample of others, it is {low:+.3g} to {high:+.3g}"
    ahead = pair.by_query.first if sign > 0 else pair.by_query.second
    return (
        f"Whether it would be on other queries is open: {why} ({ahead:,} of "
        f"{counted(_count(pair), 'queries')} prefer it)."
    )


def _open(pair: Preference, found: Comparison) -> str:
    said = f"Cannot tell yet whether {_name(pair.first)} or {_name(pair.second)} is better: "
    if pair.low is None:
        return (
            f"{said}fewer than {LEAST} sessions prefer either of them"
            if found.until is None
            else f"{said}too little of the {found.until:,} planned sessions is there"
        ) + "."
    said += (
        f"{pair.mean:+.3g} {found.unit} a session for {_name(pair.first)} ({_interval(pair, 1)}); "
    )
    if found.until is not None:
        if pair.more_sessions:
            return f"{said}{counted(pair.more_sessions, 'sessions')} more to the planned end."
        return f"{said}the planned end is reached, and the difference, if any, is within this."
    if pair.more_sessions is None:
        return f"{said}no number of sessions would tell a difference as small as this one."
    more = _rounded(pair.more_sessions)
    return f"{said}about {counted(more, 'sessions')} more would tell, if it stays so."


def _interval(pair: Preference, sign: int) -> str:
    low, high = sorted((sign * (pair.low or 0.0), sign * (pair.high or 0.0)))
    level = f"{100 * (1 - pair.level):.3g}%"
    return f"{level} interval {low:+.3g} to {high:+.3g}, whenever one looks"


def _count(pair: Preference) -> int:
    return pair.by_query.first + pair.by_query.second + pair.by_query.ties


def _rounded(count: int) -> int:
    """Two digits are more than is known."""
    return int(float(f"{count:.2g}"))


def _name(arm: str) -> str:
    return shortened(start_of(arm)) if not arm.strip() or " " in arm else start_of(arm)
