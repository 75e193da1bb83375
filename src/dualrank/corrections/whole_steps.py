"""Steps of a belief on all lists at once: some of the way to where its loss is least.

Where every step takes all lists, slopes have no noise, and there are fewer steps. How far a step of
gradient descent gets would depend on the share of sessions that have a click, on how rarely the
last positions are examined, and on how nearly φ and the worth of a ground say the same thing. A
share of a Newton step does not.

The share decides who learns first what position and relevance could both explain. A belief that is
always at its best beside a ranker that knows little yet takes it all for position; one that hardly
moves leaves it all to the ranker.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

SHARE = 0.03
"""Of the way to where the loss would be least, for the ranker's scores as they are."""
RIDGE = 1e-6
LONGEST = 1.0
"""No φ moves further in one step."""


def bend_of_softmax(expected: Tensor, ground: Tensor | None = None) -> Tensor:
    """The curvature of Σ_l T_l log Σ_k e^{φ_k + a s_k} in φ and, where there is a ground s, in a.

    `expected` is T_l p_lk, `[lists, positions]`: clicks by list and position as they are expected.

        ∂²l/∂φ_i∂φ_j = Σ_l T (p_i [i = j] − p_i p_j)
    """
    total = expected.sum(dim=1, keepdim=True).clamp(min=1e-12)
    by_position = torch.diag(expected.sum(dim=0)) - expected.T @ (expected / total)
    if ground is None:
        return by_position
    mean = (expected * ground).sum(dim=1, keepdim=True) / total
    across = (expected * (ground - mean)).sum(dim=0)
    return _bordered(by_position, across, (expected * (ground - mean) ** 2).sum())


def bend_of_each(curvature: Tensor, ground: Tensor | None = None) -> Tensor:
    """The same for a loss that is a sum over documents, of which this is the curvature."""
    by_position = torch.diag(curvature.sum(dim=0))
    if ground is None:
        return by_position
    across = (curvature * ground).sum(dim=0)
    return _bordered(by_position, across, (curvature * ground**2).sum())


def move_some_of_the_way(
    parameters: Sequence[Tensor], slope: Tensor, bend: Tensor, rate: float = 1.0
) -> bool:
    """Move all parameters by a share of a Newton step; False where slopes are not finite.

    A `rate` of 1 is the usual share; none goes further than Newton's step itself.
    """
    if not (torch.isfinite(slope).all() and torch.isfinite(bend).all()):
        return False
    slope, bend = slope.double(), bend.double()
    # What is added to all φ alike changes nothing; the ridge leaves it where it is.
    ridge = RIDGE * max(float(bend.diagonal().mean()), 1e-12)
    way = torch.linalg.solve(bend + ridge * torch.eye(len(bend), device=bend.device), -slope)
    share = min(1.0, SHARE * rate)
    way *= share / max(1.0, float(way.abs().max()) * share / LONGEST)
    sizes = [parameter.numel() for parameter in parameters]
    with torch.no_grad():
        for parameter, part in zip(parameters, way.split(sizes), strict=True):
            parameter += part.view_as(parameter).to(parameter.dtype)
    return True


def _bordered(inner: Tensor, across: Tensor, corner: Tensor) -> Tensor:
    top = torch.cat([inner, across[:, None]], dim=1)
    return torch.cat([top, torch.cat([across, corner[None]])[None]])
