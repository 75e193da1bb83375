"""Do the curves that this log gives agree?

Raw click-through falls with examination *and* with relevance, as better documents stand on top.
Harvesting compares a document with itself and sees examination alone. Dual learning must tell the
two apart by features: where the ranker that made the lists knew more than they say, the part of
relevance that is hidden from it is taken for examination, and the learned curve slides from the
harvested one towards the raw one. How far,

    t = Σ_k (log l_k − log h_k)(log r_k − log h_k) / Σ_k (log r_k − log h_k)²,

is 0 where the learned curve l is the harvested one h, and 1 where it is the raw one r.

That two curves do not differ clearly confirms neither where they are hardly known: they agree only
where a difference by a factor of `TELLING` would have been seen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import NORMAL_95, SURELY, TELLING, alarm_errors, seen
from dualrank.diagnostics.connectivity import WIDE, interval_width
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question
from dualrank.propensity.propensity import Propensity

NAME = "curves"
# Curves that differ by less than this factor everywhere lead to the same ranker.
ALIKE = 1.2
# Shares of the way from the harvested to the raw curve.
SOME_WAY, MOST_OF_THE_WAY = 0.25, 0.5


@dataclass(frozen=True)
class Gap:
    """Where two curves are farthest apart: by which factor, and within which interval.

    The interval is that of an alarm over all positions. `blind` is the factor by which they would
    have to differ, at the position where least is known, for that to be seen and for the interval
    there not to hold it; `told` is how many positions from the first on are known so well that
    this is at most `TELLING`.
    """

    position: int
    factor: float
    low: float
    high: float
    blind: float
    told: int

    @property
    def size(self) -> float:
        """The factor, whichever of the curves is above the other."""
        return max(self.factor, 1 / self.factor)

    @property
    def is_clear(self) -> bool:
        """Whether it is more than noise, and enough to matter."""
        return self.size > ALIKE and not self.low <= 1 <= self.high

    @property
    def interval(self) -> str:
        """In words."""
        return f"{SURELY} interval {self.low:.2f}–{self.high:.2f}"


def curves(facts: LogFacts) -> Point:
    """Raw, harvested and learned curve with their distances."""
    found = {"raw": facts.raw, "harvested": facts.harvested, "learned": facts.learned}
    known = {name: curve for name, curve in found.items() if isinstance(curve, Propensity)}
    gaps = {
        f"{one}_to_{other}": gap(known[one], known[other])
        for one, other in (("harvested", "raw"), ("harvested", "learned"), ("learned", "raw"))
        if one in known and other in known
    }
    numbers: dict[str, Any] = {
        **{name: _numbers(curve) for name, curve in known.items()},
        "missing": {name: why for name, why in found.items() if isinstance(why, str)},
        "gaps": {name: asdict(each) for name, each in gaps.items()},
    }
    asked = Question(NAME, numbers)
    if "raw" not in known:
        return asked.answer("not measured", f"There is no curve: {facts.raw}.")
    if "harvested" not in known:
        left = "the learned curve is" if "learned" in known else "click-through is all there is,"
        return asked.answer(
            "not measured",
            f"Nothing in the log can confirm or refute a curve ({facts.harvested}); {left} "
            "unproven.",
            "Collect some swaps (see plan_swaps), which a harvested curve needs.",
        )
    raw, harvested = known["raw"], known["harvested"]
    bias = gaps["harvested_to_raw"]
    ends = harvested.details.get("ends")
    if "learned" not in known and ends:
        return asked.answer(
            "warning",
            f"The harvested curve ends at position {harvested.depth}: {ends}. What is believed of "
            "positions below is unproven.",
            "Collect some swaps that reach them (see plan_swaps).",
        )
    width = interval_width(harvested)
    if "learned" not in known and width > WIDE:
        bounds = f"a factor of {width:.1f}" if np.isfinite(width) else "no bounds"
        return asked.answer(
            "not measured",
            f"The harvested curve is known only within {bounds} at its worst position, and nothing "
            "else in the log can confirm it.",
            "Log longer, or swap more results.",
        )
    if "learned" not in known:
        return asked.answer(
            "good",
            "The harvested curve stands by itself; raw click-through differs from it by a factor "
            f"of up to {bias.size:.2f}, which is the relevance of what stood on top.",
            "Give the features of the documents to see whether dual learning finds the same curve.",
        )
    learned = known["learned"]
    apart = gaps["harvested_to_learned"]
    way = share_of_the_way(harvested, learned, raw) if bias.is_clear else float("nan")
    numbers["share_of_the_way_from_harvested_to_raw"] = way
    if not apart.is_clear and apart.blind > TELLING:
        return asked.answer(
            "not measured",
            "Whether dual learning finds the harvested curve cannot be told: they differ by a "
            f"factor of up to {apart.size:.2f}, and {_blindness(apart)}.",
            "Log longer, or swap more results; until then neither curve confirms the other.",
        )
    if not apart.is_clear and facts.dataset is not None and not facts.features_tell:
        return asked.answer(
            "not measured",
            f"Dual learning finds the harvested curve, within a factor of {apart.size:.2f}, but "
            "from features that are not seen to tell which documents are clicked: that confirms "
            "nothing.",
            "Believe the harvested curve, and see what is said of the features.",
        )
    if not apart.is_clear:
        return asked.answer(
            "good",
            f"Dual learning finds the harvested curve, within a factor of {apart.size:.2f}, and a "
            f"difference by one of {max(apart.blind, ALIKE):.2f} would have been seen: both can be "
            "believed"
            + (f" as far as position {harvested.depth}, where the latter ends." if ends else "."),
        )
    distance = (
        f"The learned curve is {apart.factor:.2f} times ({apart.interval}) the harvested one at "
        f"position {apart.position}"
    )
    if way > SOME_WAY:
        return asked.answer(
            "failed" if way > MOST_OF_THE_WAY else "warning",
            f"{distance}, {min(way, 1):.0%} of the way to raw click-through: confounding is "
            "likely, the lists were ranked by something that the features do not tell.",
            "Train with the harvested propensities, or add the features that the ranker used.",
        )
    side = (
        "not on the way to raw click-through: the two contradict each other"
        if bias.is_clear
        else "raw click-through is too close to the harvested curve to tell whether that is "
        "confounding: the two contradict each other"
    )
    return asked.answer(
        "warning",
        f"{distance}, and {side}.",
        "Believe the harvested curve, and see the points below for what may mislead either.",
    )


def gap(one: Propensity, other: Propensity) -> Gap:
    """The largest factor of `other` against `one`, over the positions that both know."""
    depth = min(one.depth, other.depth)
    difference = np.log(other.examination[:depth] / one.examination[:depth])
    size = np.abs(difference)
    error = np.hypot(_error(one, depth), _error(other, depth))
    errors = np.divide(size, error, out=np.zeros(depth), where=error > 0)
    needed = alarm_errors(depth - 1)
    # The clearest difference counts, of those that are large enough to matter.
    clear = np.where(size > np.log(ALIKE), errors, 0.0)
    k = int(clear.argmax() if clear.max() > needed else 1 + size[1:].argmax())
    with np.errstate(over="ignore"):  # beyond all numbers is unbounded
        low, high = np.exp(difference[k] + needed * error[k] * np.array([-1.0, 1.0]))
        blind = np.exp(np.maximum(seen(needed) * error, size + needed * error))
    hidden = np.flatnonzero(blind > TELLING)
    told = int(hidden[0]) if len(hidden) else depth
    factor = float(np.exp(difference[k]))
    return Gap(k + 1, factor, float(low), float(high), float(blind.max()), told)


def _blindness(found: Gap) -> str:
    """Where a difference could have been missed, in words."""
    missed = f"one of {found.blind:.1f}" if found.blind < 100 else "any"
    return (
        f"{missed} could have been missed"
        if found.told < 2
        else f"{missed} could have been missed below position {found.told}"
    )


def share_of_the_way(harvested: Propensity, learned: Propensity, raw: Propensity) -> float:
    """How far the learned curve lies from the harvested (0) to the raw one (1)."""
    depth = min(harvested.depth, learned.depth, raw.depth)
    to_learned, to_raw = (
        np.log(each.examination[:depth] / harvested.examination[:depth]) for each in (learned, raw)
    )
    return float(to_learned @ to_raw / (to_raw @ to_raw))


def _error(curve: Propensity, depth: int) -> NDArray[np.float64]:
    if curve.low is None or curve.high is None:
        return np.full(depth, np.inf)
    return np.log(curve.high[:depth] / curve.low[:depth]) / (2 * NORMAL_95)


def _numbers(curve: Propensity) -> dict[str, object]:
    return {
        "method": curve.method,
        "examination": curve.examination,
        "low": curve.low,
        "high": curve.high,
        "intervals_over": curve.details.get("intervals_over"),
    }
