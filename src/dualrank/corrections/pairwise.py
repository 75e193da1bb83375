"""Pairwise debiasing: what clicks and skips are worth by position, learned from pairs of them.

Hu, Wang, Peng and Li, "Unbiased LambdaMART: An Unbiased Pairwise Learning-to-Rank Algorithm" (WWW
2019); what XGBoost does with `lambdarank_unbiased`. Clicks at position i tell relevance up to a
factor t⁺_i, and skips at j irrelevance up to t⁻_j, which are learned with the ranker:

    l = Σ_i Σ_j L_ij / (t⁺_i t⁻_j),          L_ij = c_i (1 − c_j) log(1 + e^{−(s_i − s_j)})
    t⁺_i = (S⁺_i / S⁺_1)^{1/(1 + p)},        S⁺_i = Σ_j L_ij / t⁻_j      over all lists
    t⁻_j = (S⁻_j / S⁻_1)^{1/(1 + p)},        S⁻_j = Σ_i L_ij / t⁺_i

with p for the strength of the regularisation. Right where skips tell irrelevance by a factor of the
position alone; but a skip is irrelevant *or* not examined, so that this holds only nearly.

Losses are also larger where the ranker is wrong, so that t⁺ depends on how far it has come: at
p = 0 it starts as the click-through of positions, comes near their examination as the ranker
learns, and goes on, beyond it in a long or fast training; with p > 0 it rests where all positions
are nearly alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dualrank.corrections.correction import Basis, Correction
from dualrank.corrections.losses import (
    clicked_over_skipped,
    of_pairs,
    pair_losses,
    pairs_loss,
    share_of_others,
)
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal, Step

P = 0.0
MOVE = 0.005
"""How much of the sums over lists each step brings anew."""


class Pairwise(Correction):
    """Both tables t, from running sums over the lists of recent steps."""

    learns = True
    slopes_only = True

    def __init__(self, depth: int, max_weight: float = torch.inf) -> None:
        self._limit = max_weight
        self._sums = torch.zeros(2, depth)

    @classmethod
    def build(cls, basis: Basis) -> Pairwise:
        """All positions alike."""
        return cls(basis.depth, basis.settings.max_weight)

    def start(self, device: torch.device) -> None:
        """Move the sums."""
        super().start(device)
        self._sums = self._sums.to(device)

    def ratios(self) -> Tensor:
        """t⁺ and t⁻; 1 at positions of which nothing is known."""
        known = (self._sums > 0) & (self._sums[:, :1] > 0)
        ratio = torch.where(known, self._sums / self._sums[:, :1].clamp(min=1e-30), 1.0)
        return ratio.pow(1 / (1 + P)).clamp(1 / self._limit, self._limit)

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Pairs of a click and a skip, each by both its inverses; S⁺ and S⁻ as evidence."""
        clicked, skipped = self.ratios()
        seen = clicked_over_skipped(shown) * share_of_others(shown)
        weights = of_pairs(seen / (clicked[:, None] * skipped), shown)
        loss = pairs_loss(scores, weights, shown)
        losses = weights * pair_losses(scores)
        sums = torch.stack([losses.sum(dim=(0, 2)) * clicked, losses.sum(dim=(0, 1)) * skipped])
        clicks = shown.labels.sum()
        return Signal(loss.value, loss.slope, loss.curvature, clicks, evidence=[sums])

    def learn(self, evidence: Sequence[Tensor], step: Step) -> None:
        """Some of the way to the sums of these lists."""
        (sums,) = evidence
        if torch.isfinite(sums).all():
            self._sums = (1 - MOVE) * self._sums + MOVE * sums / step.drawn

    def propensity(self) -> Propensity:
        """t⁺, the factor of clicks."""
        return Propensity.of(self.ratios()[0].double().cpu().numpy(), method="pairwise")

    def state(self) -> dict[str, Tensor]:
        """The sums."""
        return {"sums": self._sums}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with the sums."""
        self._sums = state["sums"].to(self._sums.device)
