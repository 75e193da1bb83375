"""What the record of a learner says of one round."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from dualrank.online.learner.corrected_worth import corrected_worth
from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.learner.round_clicks import RoundClicks
from dualrank.online.learner_record import Round
from dualrank.propensity.propensity import Propensity

MOST_EXAMINATION = 1e6


def entry_of(found: RoundClicks, curve: Propensity | None, state: LearnerState, live: int) -> Round:
    """The clicks of a round, how late they were learned, and what they are worth."""
    now = time.time()
    worth = corrected_worth(found.log, curve)
    low = None if curve is None else curve.low
    high = None if curve is None else curve.high
    return Round(
        time=now,
        sessions=state.sessions,
        clicks=state.clicks,
        delay=max(now - found.latest, 0.0) if found.latest else 0.0,
        version=live,
        worth=None if worth is None else worth.mean,
        worth_low=None if worth is None else worth.low,
        worth_high=None if worth is None else worth.high,
        examination=[] if curve is None else curve.examination.tolist(),
        low=[] if low is None else low.tolist(),
        high=[] if high is None else _finite(high),
    )


def _finite(values: NDArray[np.float64]) -> list[float]:
    """JSON has no infinity: an interval without an end ends far away."""
    return [float(value) for value in np.minimum(values, MOST_EXAMINATION)]
