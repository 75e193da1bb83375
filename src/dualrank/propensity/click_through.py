"""Click-through per position: what examination would be if all positions were equally relevant.

    ê_k = (clicks at k / impressions at k) / (clicks at 1 / impressions at 1)

On lists of a ranker this is biased downwards, as the better documents stand first: it is the
reference that shows how much of the fall in clicks an estimator attributes to relevance. On lists
that were shuffled it is right (see `randomisation`).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dualrank.propensity.bootstrap import Evidence, log_ratio
from dualrank.propensity.grouped_clicks import unclicked
from dualrank.propensity.grouped_parts import Grouped


def click_through(grouped: Grouped) -> Evidence:
    """Clicks and impressions per position and group."""
    clicks, shown = grouped.total(lambda part: (part.clicks_by_group, part.shown_by_group))
    impressions = shown.sum(axis=0).astype(np.int64)
    sums = np.stack([clicks, shown], axis=1)
    return Evidence("click-through", sums, log_ratio, impressions, partial(unclicked, impressions))
