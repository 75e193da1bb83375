"""What a ranking earns: clicks per session, and three measures that look at where they fall.

With p_k the probability of a click on the document at rank k,

    clicks           Σ_k p_k
    dcg              Σ_k p_k / log₂(k + 1)             the DCG of clicked documents
    precision@1      p_1
    first-click      Σ_k p_k/k · Π_{j<k} (1 − p_j)     the reciprocal rank of the first click

The first three are linear in clicks, and take any value of events in their place. The last takes
clicks of a session to be independent, as the position-based model does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLICKS, DCG, TOP, FIRST = "clicks", "dcg", "precision@1", "first-click"
LINEAR = (CLICKS, DCG, TOP)
METRICS = (*LINEAR, FIRST)


def gains(metric: str, depth: int) -> Floats:
    """What a click at each rank is worth to one of the `LINEAR` metrics.

    >>> gains(DCG, 3).round(2)
    array([1.  , 0.63, 0.5 ])
    """
    ranks = np.arange(1, depth + 1)
    by_metric = {CLICKS: np.ones(depth), DCG: 1 / np.log2(ranks + 1), TOP: ranks == 1}
    return by_metric[metric].astype(np.float64)


def first_click(p: Floats) -> tuple[Floats, Floats]:
    """The expected reciprocal rank of the first click of lists, and its slope in every p.

    From the end of the list, T_k = p_k/k + (1 − p_k) T_{k+1} is what is expected below where
    nothing was clicked above.

    >>> first_click(np.array([[0.5, 0.5]]))[0]
    array([0.625])
    """
    depth = p.shape[1]
    below = np.zeros((len(p), depth + 1))
    for k in reversed(range(depth)):
        below[:, k] = p[:, k] / (k + 1) + (1 - p[:, k]) * below[:, k + 1]
    unclicked = np.cumprod(np.concatenate([np.ones((len(p), 1)), 1 - p[:, :-1]], axis=1), axis=1)
    slopes: Floats = unclicked * (1 / np.arange(1, depth + 1) - below[:, 1:])
    return below[:, 0], slopes
