"""Losses over lists, as pure functions on `[lists, positions]`, with their slopes written out.

Every loss takes scores, targets and the lists, and gives a `Loss`: any of them goes where any other
does. `targets` are clicks (0 or 1), mean clicks over the sessions of a list, grades, or either with
weights: a loss is linear in them. Padding is in no softmax and no sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dualrank.rankers.batch import Shown


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss summed over lists, its slope in every score, and its curvature where that is asked."""

    value: Tensor
    slope: Tensor
    curvature: Callable[[], Tensor]


def softmax_loss(scores: Tensor, targets: Tensor, shown: Shown) -> Loss:
    """The softmax cross entropy of the paper, equations (8) and (10).

        l = −Σ_x t_x log P(x),   P(x) = e^{s_x} / Σ_z e^{s_z}
        ∂l/∂s_x = P(x) Σ_z t_z − t_x,   ∂²l/∂s_x² = P(x) (1 − P(x)) Σ_z t_z

    With t_x = c_x P_E(o_1)/P_E(o_x) it is the ranker's l̂_IPW, with t_x = c_x P_S(r_1)/P_S(r_x) and
    the scores of positions the propensity model's l̂_IRW, and with t = c the loss of uncorrected
    clicks.
    """
    log_p = masked_log_softmax(scores, shown)
    p = torch.exp(log_p) if shown.full else torch.exp(log_p) * shown.weight
    total = targets.sum(dim=-1, keepdim=True)
    return Loss(
        value=-(targets * log_p).sum(),
        slope=total * p - targets,
        curvature=lambda: total * p * (1 - p),
    )


def plackett_luce_loss(scores: Tensor, targets: Tensor, shown: Shown) -> Loss:
    """The order of a list's first documents under Plackett and Luce's model.

        l = −Σ_k t_k (s_k − log D_k),   D_k = Σ_{j ≥ k} e^{s_j}
        ∂l/∂s_x = e^{s_x} Σ_{k ≤ x} t_k/D_k − t_x

    Targets are 1 for documents whose rank is known and 0 for those that came after them all.
    """
    known = scores.masked_fill(~shown.mask, -torch.inf)
    below = known.flip(-1).logcumsumexp(-1).flip(-1)
    log_p = (known - below).masked_fill(~shown.mask, 0.0)
    # P(x drawn at k) for every pair, because sums over e^{s_x} and 1/D_k apart would overflow. Only
    # ranks that are known are drawn at, and these stand first.
    ranks = int((targets != 0).any(dim=0).sum())
    at = below[:, :ranks].masked_fill(targets[:, :ranks] == 0, torch.inf)
    at_rank = torch.exp(known[:, None, :] - at[:, :, None]).triu()
    expected = at_rank * targets[:, :ranks, None]
    drawn = expected.sum(dim=-2)
    return Loss(
        value=-(targets * log_p).sum(),
        slope=drawn - targets,
        curvature=lambda: drawn - (expected * at_rank).sum(dim=-2),
    )


def masked_log_softmax(scores: Tensor, shown: Shown) -> Tensor:
    """log P(x) = s_x − log Σ_z e^{s_z} over each list, and 0 at padding; equation (9)."""
    if shown.full:
        return torch.log_softmax(scores, dim=-1)
    padding = ~shown.mask
    log_p = torch.log_softmax(scores.masked_fill(padding, -torch.inf), dim=-1)
    return log_p.masked_fill(padding, 0.0)


def ratio_to_first(log_odds: Tensor, max_weight: float = torch.inf) -> Tensor:
    """P(1)/P(x) = e^{s_1 − s_x} for every position: the inverse weights of equation (10).

    The exponent is unbounded, so the ratio is clipped before it is taken, not after: at
    `max_weight`, and never above what the type can hold (an infinite weight times no click would
    be a nan). Scores serve as well as log probabilities: what they differ by cancels.
    """
    largest = math.log(torch.finfo(log_odds.dtype).max) - 1
    limit = min(math.log(max_weight), largest)
    return torch.exp((log_odds[..., :1] - log_odds).clamp(max=limit))
