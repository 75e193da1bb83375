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
    # ranks that are known are drawn at, and none stands after the last of them.
    known_ranks = (targets != 0).any(dim=0).nonzero()
    ranks = int(known_ranks[-1]) + 1 if len(known_ranks) else 0
    at = below[:, :ranks].masked_fill(targets[:, :ranks] == 0, torch.inf)
    at_rank = torch.exp(known[:, None, :] - at[:, :, None]).triu()
    expected = at_rank * targets[:, :ranks, None]
    drawn = expected.sum(dim=-2)
    return Loss(
        value=-(targets * log_p).sum(),
        slope=drawn - targets,
        curvature=lambda: drawn - (expected * at_rank).sum(dim=-2),
    )


def pairs_loss(scores: Tensor, weights: Tensor, shown: Shown) -> Loss:
    """Documents above others: a logistic loss for every pair (i, j) of a list, by its weight.

        l = Σ_ij w_ij log(1 + e^{−(s_i − s_j)}),        σ_ij = 1/(1 + e^{−(s_i − s_j)})
        ∂l/∂s_x = Σ_j w_jx σ_xj − w_xj σ_jx,   ∂²l/∂s_x² = Σ_j (w_xj + w_jx) σ_xj σ_jx

    `weights` are `[lists, i, j]`; those of padding, and of a document with itself, count nothing.
    """
    apart, w = _apart(scores), of_pairs(weights, shown)
    below = w * torch.sigmoid(-apart)
    return Loss(
        value=(w * pair_losses(scores)).sum(),
        slope=below.sum(dim=1) - below.sum(dim=2),
        curvature=lambda: ((w + w.mT) * torch.sigmoid(apart) * torch.sigmoid(-apart)).sum(dim=2),
    )


def pair_losses(scores: Tensor) -> Tensor:
    """log(1 + e^{−(s_i − s_j)}), `[lists, i, j]`."""
    return torch.nn.functional.softplus(-_apart(scores))


def of_pairs(weights: Tensor, shown: Shown) -> Tensor:
    """Weights of pairs of displayed documents, and 0 for padding and a document with itself."""
    pairs = shown.mask[:, :, None] & shown.mask[:, None, :]
    pairs &= ~torch.eye(pairs.shape[1], dtype=torch.bool, device=pairs.device)
    return torch.where(pairs, weights, 0.0)


def clicked_over_skipped(shown: Shown) -> Tensor:
    """c_i (1 − c_j), `[lists, i, j]`: how often i was clicked and j was not, c being mean clicks.

    Where labels are sums over n sessions, it is n times that.
    """
    c = shown.labels
    return c[:, :, None] * (1 - c / shown.times)[:, None, :]


def _apart(scores: Tensor) -> Tensor:
    return scores[:, :, None] - scores[:, None, :]


def share_of_others(shown: Shown) -> Tensor:
    """1/(n − 1) for a list of n documents, `[lists, 1, 1]`: one of those that one stands against.

    With it a click counts once however long its list is, as in the softmax loss, and rates suit
    both.
    """
    return 1 / (shown.weight.sum(dim=1) - 1).clamp(min=1)[:, None, None]


def pairwise_loss(scores: Tensor, targets: Tensor, shown: Shown) -> Loss:
    """Pairwise logistic loss: every label against all other documents of the list, whatever theirs.

        l = Σ_i t_i/(n − 1) Σ_{j ≠ i} log(1 + e^{−(s_i − s_j)})

    Linear in labels, as the hinge of Joachims et al. (2017) is, so that unbiased labels give an
    unbiased loss. RankNet (Burges et al. 2005) weighs by [t_i > t_j], which noise in labels biases.
    """
    return pairs_loss(scores, targets[:, :, None] * share_of_others(shown), shown)


def lambdarank_loss(scores: Tensor, targets: Tensor, shown: Shown) -> Loss:
    """LambdaRank's: pairs as in `pairwise_loss`, by what swapping them changes of DCG.

        l = Σ_i t_i Σ_{j ≠ i} |D(i) − D(j)| log(1 + e^{−(s_i − s_j)}),   D(x) = 1/log2(1 + rank(x))

    Burges, Ragno and Le, "Learning to Rank with Nonsmooth Cost Functions" (NIPS 2006), as an
    unbiased bound of DCG (Agarwal et al. 2019). Ranks are those by the scores of this step and
    count as fixed. Gains are the labels themselves and not divided by the ideal DCG, which would be
    that of noise.
    """
    order = scores.masked_fill(~shown.mask, -torch.inf).argsort(dim=1, descending=True)
    ranks = torch.arange(1, scores.shape[1] + 1, device=scores.device).expand_as(order)
    discount = 1 / torch.log2(1 + torch.empty_like(scores).scatter_(1, order, ranks.to(scores)))
    swapped = (discount[:, :, None] - discount[:, None, :]).abs()
    return pairs_loss(scores, targets[:, :, None] * swapped, shown)


LossOfLabels = Callable[[Tensor, Tensor, Shown], Loss]

LOSSES: dict[str, LossOfLabels] = {
    "softmax": softmax_loss,
    "pairwise": pairwise_loss,
    "lambdarank": lambdarank_loss,
}
"""The losses of corrected labels, by name; each is linear in labels."""


def masked_log_softmax(scores: Tensor, shown: Shown) -> Tensor:
    """log P(x) = s_x − log Σ_z e^{s_z} over each list, and 0 at padding; equation (9).

    On rows as short as lists, `torch.log_softmax` takes three times as long.
    """
    if shown.full:
        return scores - torch.logsumexp(scores, dim=-1, keepdim=True)
    total = torch.logsumexp(scores.masked_fill(shown.padding, -torch.inf), dim=-1, keepdim=True)
    return (scores - total).masked_fill_(shown.padding, 0.0)


def ratio_to_first(
    log_odds: Tensor, max_weight: float = torch.inf, first: Tensor | None = None
) -> Tensor:
    """P(1)/P(x) = e^{s_1 − s_x} for every position: the inverse weights of equation (10).

    Where lists have gaps, `first` says at which position the first document of each stands. Which
    document the others are compared with is only a weight of the list.

    The exponent is unbounded, so the ratio is clipped before it is taken, not after: at
    `max_weight`, and never above what the type can hold (an infinite weight times no click would
    be a nan). Scores serve as well as log probabilities: what they differ by cancels.
    """
    largest = math.log(torch.finfo(log_odds.dtype).max) - 1
    limit = min(math.log(max_weight), largest)
    of_first = log_odds[..., :1] if first is None else log_odds.gather(1, first[:, None])
    return torch.exp((of_first - log_odds).clamp(max=limit))
