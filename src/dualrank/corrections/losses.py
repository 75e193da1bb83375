"""The softmax cross entropy of the paper, as pure functions on `[lists, positions]` with a mask.

`labels` are clicks (0 or 1), mean clicks over the sessions of a list, or grades: the loss is
linear in them. Positions outside `mask` are padding: they are in no softmax and no sum.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def masked_log_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """log P(x) = s_x − log Σ_z e^{s_z} over each list, and 0 at padding; equation (9)."""
    padding = ~mask
    log_probabilities = torch.log_softmax(scores.masked_fill(padding, -torch.inf), dim=-1)
    return log_probabilities.masked_fill(padding, 0.0)


def softmax_cross_entropy(
    log_probabilities: Tensor, labels: Tensor, weights: Tensor | float = 1.0
) -> Tensor:
    """−Σ_x w_x c_x log P(x), one value per list; equations (8) and (10).

    With w_x = P_E(o_1)/P_E(o_x) it is the ranker's l̂_IPW, with w_x = P_S(r_1)/P_S(r_x) the
    propensity model's l̂_IRW, and with w = 1 the loss of uncorrected clicks.
    """
    return -(weights * labels * log_probabilities).sum(dim=-1)


def ratio_to_first(log_probabilities: Tensor, max_weight: float = torch.inf) -> Tensor:
    """P(1)/P(x) for every position: the inverse weights of equation (10), without gradient.

    The exponent is unbounded, so the ratio is clipped before it is taken, not after: at
    `max_weight`, and never above what the type can hold (an infinite weight times no click would
    be a nan).
    """
    detached = log_probabilities.detach()
    largest = math.log(torch.finfo(detached.dtype).max) - 1
    limit = min(math.log(max_weight), largest)
    return torch.exp((detached[..., :1] - detached).clamp(max=limit))
