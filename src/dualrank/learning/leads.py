"""How far trained rankers are ahead of the naive one, as a model keeps it, and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dualrank.evaluation.click_check import CLEAR, Lead
from dualrank.showing.axes import title
from dualrank.showing.interval_rows import Interval, draw_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def leads_of(training: Mapping[str, Any]) -> dict[str, Lead]:
    """The leads over the naive ranker that were found when a model was trained, by method."""
    found = training.get("twin") or training.get("auto") or {}
    return {name: Lead(**lead) for name, lead in (found.get("leads") or {}).items()}


def interval_of(lead: Lead) -> tuple[float, float]:
    """From where to where the gain is not told from others: what is clear lies beside zero."""
    return lead.gain - CLEAR * lead.error, lead.gain + CLEAR * lead.error


def draw_leads(ax: Axes, leads: Mapping[str, Lead], chosen: str | None = None) -> None:
    """Every lead with its interval against zero, the largest above, the chosen method bold."""
    ranked = sorted(leads.items(), key=lambda item: -item[1].gain)
    draw_intervals(
        ax,
        [
            Interval(name, lead.gain, *interval_of(lead), strong=name == chosen)
            if np.isfinite(lead.error)
            else Interval(name)
            for name, lead in ranked
        ],
    )
    title(ax, "Lead over no correction")
    by_grades = all(lead.clicks == 0 for lead in leads.values())
    unit = "metric on judged queries" if by_grades else "log-likelihood per held-out click"
    ax.set_xlabel(f"{unit}, ±{CLEAR:g} standard errors")
