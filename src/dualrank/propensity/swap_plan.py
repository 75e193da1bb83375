"""The noun for an experiment that measures examination: designs side by side, one recommended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.errors import DataError
from dualrank.propensity.swap_plan_card import (
    draw_precision,
    drawn_designs,
    swap_plan_card,
)
from dualrank.propensity.swap_words import as_percent, in_days, rounded
from dualrank.showing.axes import SIZE, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DesignName = Literal["first with k", "neighbours", "full shuffles"]
RoughCurve = Literal["harvested", "the worst"]
DOES: Mapping[DesignName, str] = {
    "first with k": "Swap the first result with one of the others",
    "neighbours": "Swap two neighbouring results",
    "full shuffles": "Shuffle all results",
}


@dataclass(frozen=True, eq=False)
class PlannedDesign:
    """One way to swap, and what it takes until the curve is known to the precision wanted.

    `shares` are the shares of all sessions that show another order: by exchange, `"1-4"` for the
    first result with the fourth, or of shuffles. `sessions` is all traffic while it lasts, infinite
    where no number is enough; `lost` are clicks in all of it. `reached` is the precision of every
    position then, and `after` tells that of the worst position for any number of sessions.
    """

    name: DesignName
    method: str
    shares: Mapping[str, float]
    sessions: float
    days: float | None
    lost: float
    lost_per_thousand: float
    lost_share: float
    reached: NDArray[np.float64]
    after: Callable[[float], float]

    @property
    def ends(self) -> bool:
        """Whether some number of sessions is enough."""
        return bool(np.isfinite(self.sessions))

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "design": self.name,
            "estimator": self.method,
            "shares": dict(self.shares),
            "sessions": round(self.sessions) if self.ends else None,
            "days": self.days if self.ends else None,
            "clicks_lost": self.lost if self.ends else None,
            "clicks_lost_per_1000_sessions": self.lost_per_thousand,
            "share_of_clicks_lost": self.lost_share,
            "precision": self.reached.tolist() if self.ends else None,
        }


@dataclass(frozen=True, eq=False)
class SwapPlan:
    """The designs side by side, and what they were planned from.

    `curve` is the rough one and `curve_by` where it is from. `known` is the precision of the worst
    position that documents that moved by themselves give already, infinite where they do not reach
    it; `limit` is the best that any number of sessions reaches, as far as the log tells. `cut` says
    why the plan ends before the lists do.
    """

    precision: float
    share: float
    curve: NDArray[np.float64]
    curve_by: RoughCurve
    known: float
    limit: float
    sessions_logged: int
    clicks_per_session: float
    sessions_per_day: float | None
    designs: tuple[PlannedDesign, ...]
    cut: str | None = None

    def __repr__(self) -> str:
        return f"SwapPlan({self.summary})"

    def _repr_html_(self) -> str:
        """A card for notebooks: what to do, and every design with what it takes."""
        return swap_plan_card(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the precision of the worst position against the clicks that users lose until then.

        A line for each design, with a mark where its plan ends. Needs matplotlib.
        """
        drawn = drawn_designs(self)
        if not drawn:
            raise DataError(f"there is no cost to draw. {self.summary}")
        ax = axes_for(ax, width=1.25 * SIZE[0], height=1.15 * SIZE[1])
        draw_precision(ax, self, drawn)
        return ax

    @property
    def recommended(self) -> PlannedDesign | None:
        """The design with the least product of sessions and clicks lost, if swaps are needed.

        To take twice as long, a design must lose less than half of the clicks.
        """
        if self.known <= self.precision:
            return None
        enough = [design for design in self.designs if design.ends]
        return min(enough, key=lambda each: each.sessions * max(each.lost, 1.0), default=None)

    @property
    def costs_at_most(self) -> bool:
        """Whether costs are those of the worst curve, so that they may well be less."""
        return self.curve_by == "the worst"

    @property
    def summary(self) -> str:
        """What to do, for how long, and what it costs, in a sentence."""
        best = self.recommended
        if self.known <= self.precision:
            return (
                "No swaps are needed: documents that moved by themselves tell the curve within "
                f"±{self.known:.1%} already (harvest-all-pairs)."
            )
        if best is None:
            return (
                f"No number of swaps tells the curve within ±{as_percent(self.precision)}: queries "
                f"differ so much that ±{self.limit:.0%} is the best that those of this log allow."
            )
        days = "" if best.days is None else f"about {in_days(best.days)}; "
        reach = "" if self.cut is None else f" down to position {len(self.curve)}"
        bound = "at most " if self.costs_at_most else ""
        cost = f"{bound}{best.lost_share:.2%} of the clicks in them" if best.lost > 0 else "nothing"
        return (
            f"{DOES[best.name]} in {as_percent(self.share)} of sessions for about "
            f"{rounded(best.sessions)} sessions ({days}costs {cost}), and the curve is known "
            f"within ±{as_percent(self.precision)}{reach}."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        best = self.recommended
        return {
            "summary": self.summary,
            "recommended": None if best is None else best.name,
            "precision": self.precision,
            "share": self.share,
            "positions": len(self.curve),
            "designs": [design.to_dict() for design in self.designs],
            "costs_are": "at most" if self.costs_at_most else "estimated",
            "rough_curve": {"by": self.curve_by, "examination": self.curve.tolist()},
            "known_already": self.known if np.isfinite(self.known) else None,
            "best_possible": self.limit,
            "sessions_logged": self.sessions_logged,
            "clicks_per_session": self.clicks_per_session,
            "sessions_per_day": self.sessions_per_day,
            "cut": self.cut,
        }
