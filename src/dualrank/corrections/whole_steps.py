"""Steps of a belief on all lists at once: some of the way to where its loss is least.

Where every step takes all lists, slopes have no noise, and there are fewer steps. How far a step of
gradient descent gets would depend on the share of sessions that have a click, on how rarely the
last positions are examined, and on how nearly φ and the worth of a ground say the same thing. A
share of a Newton step does not.

The share decides who learns first what position and relevance could both explain. A belief that is
always at its best beside a ranker that knows little yet takes it all for position; one that hardly
moves leaves it all to the ranker.

A *bend* is the curvature of a loss in φ. Sums are taken in double precision, since what is added to
all φ alike must come out as having none.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dualrank.rankers.batch import Shown

SHARE = 0.03
"""Of the way to where the loss would be least, for the ranker's scores as they are."""
RIDGE = 1e-6
LONGEST = 1.0
"""No φ moves further in one step."""


def by_context(
    values: Tensor, shown: Shown, count: int, bend: Callable[[Tensor], Tensor]
) -> Tensor:
    """The bend of the lists of each context, `[contexts, positions, positions]`."""
    if shown.contexts is None:
        return bend(values.double())[None].float()
    parts = [bend(values[shown.contexts == context].double()) for context in range(count)]
    return torch.stack(parts).float()


def bend_of_softmax(expected: Tensor) -> Tensor:
    """That of Σ_l T_l log Σ_k e^{φ_k}, where `expected` is T_l p_lk, `[lists, positions]`.

    ∂²l/∂φ_i∂φ_j = Σ_l T (p_i [i = j] − p_i p_j)
    """
    total = expected.sum(dim=1, keepdim=True).clamp(min=1e-12)
    return torch.diag(expected.sum(dim=0)) - expected.T @ (expected / total)


def bend_of_each(curvature: Tensor) -> Tensor:
    """That of a loss that is a sum over documents, of which this is the curvature."""
    return torch.diag(curvature.sum(dim=0))


def border_of_softmax(expected: Tensor, ground: Tensor) -> list[Tensor]:
    """∂²l/∂φ∂a and ∂²l/∂a², where a s_k stands beside φ_k: Σ_l T p_i (s_i − s̄), Σ_l T var(s)."""
    expected, ground = expected.double(), ground.double()
    total = expected.sum(dim=1, keepdim=True).clamp(min=1e-12)
    apart = ground - (expected * ground).sum(dim=1, keepdim=True) / total
    return [(expected * apart).sum(dim=0).float(), (expected * apart**2).sum()[None].float()]


def border_of_each(curvature: Tensor, ground: Tensor) -> list[Tensor]:
    """The same for a sum over documents."""
    curvature, ground = curvature.double(), ground.double()
    return [(curvature * ground).sum(dim=0).float(), (curvature * ground**2).sum()[None].float()]


def bordered(bend: Tensor, across: Tensor, corner: Tensor) -> Tensor:
    """The bend in φ and a."""
    top = torch.cat([bend, across[:, None]], dim=1)
    return torch.cat([top, torch.cat([across, corner])[None]])


def some_of_the_way(slope: Tensor, bend: Tensor, rate: float = 1.0) -> Tensor:
    """A share of Newton's step from a slope, `[…, parameters]`, and its bend.

    A `rate` of 1 is the usual share; none goes further than Newton's step itself.
    """
    slope, bend = slope.double(), bend.double()
    # What is added to all φ alike changes nothing; the ridge leaves it where it is.
    size = bend.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None].clamp(min=1e-12)
    ridge = RIDGE * size * torch.eye(bend.shape[-1], dtype=bend.dtype, device=bend.device)
    way = torch.linalg.solve(bend + ridge, -slope[..., None])[..., 0]
    return (min(1.0, SHARE * rate) * way).clamp(-LONGEST, LONGEST).float()
