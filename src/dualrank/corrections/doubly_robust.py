"""Doubly robust: a regression's relevance, mended by the clicks that it does not explain.

Oosterhuis, "Doubly-Robust Estimation for Correcting Position-Bias in Click Feedback for Unbiased
Learning to Rank" (TOIS 2023). With P(c_k = 1 | x) = α_k r(x) + β_k and r̂ from a regression of
clicks on features (`click_regression`), the label is

    r̂(x) + (c_k − β_k − α_k r̂(x)) / max(α_k, τ)

Without a threshold r̂ cancels where the position is known, as in a log it is, and the labels are
those of `affine`, or of `ipw` where β is 0. With τ, clicks at seldom examined positions have no
large weight, and what they leave open is filled in by r̂ in the place of 0. The label is relevance
in the mean where α_k ≥ τ and α, β are right, whatever r̂ is; and where r̂ is right, whatever the
denominator is (α itself, in α r̂ + β, must be).

α is the `propensity` that is given, with β = 0 and the curve of each session's `context` where it
has such; without one both are learned, as by `affine`. τ is 1/√n for n sessions a list: the paper
has 10/√N for N sessions in all, but what one knows of a document depends on those that saw it. (The
paper's labels of documents that were not displayed, r̂ alone, are left out.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.corrections.click_regression import regress_clicks
from dualrank.corrections.correction import Basis, curves_by_context
from dualrank.corrections.fixed_labels import FixedLabels, mean_over_sessions
from dualrank.corrections.losses import LossOfLabels, softmax_loss
from dualrank.data.click_log import ClickLog
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity

Floats = NDArray[np.float64]


class DoublyRobust(FixedLabels):
    """Labels by α (`slopes`, a row per context), β (`offsets`), r̂ (`relevance`) and τ.

    `relevance` is that of every document that lists point to. `context` is the column of the log
    that says which row of `slopes` is a session's; there is one row without it.
    """

    regresses = True

    def __init__(
        self,
        slopes: Floats,
        offsets: Floats,
        relevance: Floats,
        threshold: float,
        *,
        context: str | None = None,
        loss: LossOfLabels = softmax_loss,
    ) -> None:
        super().__init__(loss)
        self.slopes, self.offsets, self.relevance = slopes, offsets, relevance
        self.threshold = threshold
        self._context = context
        self._propensity: Propensity | None = None

    @classmethod
    def build(cls, basis: Basis) -> DoublyRobust:
        """With the propensity that was given, or with what the log and its features tell."""
        log, features, given = basis.log, basis.features, basis.propensity
        if log is None or features is None:
            raise SettingsError("method doubly-robust learns from a click log")
        if given is None and basis.context is not None:
            raise SettingsError("method doubly-robust takes curves by context from a propensity")
        seed, column = basis.settings.seed, basis.contexts
        if given is None:
            found = regress_clicks(log, features, seed=seed)
            slopes = found.slopes[None]
        else:
            slopes = curves_by_context(given, basis.depth, None if column is None else column.names)
            exposure = mean_over_sessions(log, _of_rows(slopes, log, basis.context))
            found = regress_clicks(log, features, exposure, seed)
        built = cls(
            slopes,
            found.offsets,
            np.minimum(found.relevance(features), 1.0),
            1 / np.sqrt(max(log.sessions / max(len(log.lists), 1), 1.0)),
            context=basis.context,
            loss=basis.loss_of_labels,
        )
        built._propensity = given
        return built

    def labels(self, log: ClickLog) -> Floats:
        """What the regression says, and what clicks add to it, the mean over sessions."""
        slopes = _of_rows(self.slopes, log, self._context)
        r = np.where(log.lists.mask, self.relevance[log.lists.documents], 0.0)
        unexplained = log.clicks - self.offsets - slopes * r[log.list_of]
        mended = mean_over_sessions(log, unexplained / np.maximum(slopes, self.threshold))
        return np.where(log.lists.mask, r + mended, 0.0)

    def propensity(self) -> Propensity | None:
        """The curve that was given, if one was."""
        return self._propensity


def _of_rows(curves: Floats, log: ClickLog, context: str | None) -> Floats:
    """The curve of every row of a log, or one for all."""
    if context is None:
        return np.broadcast_to(curves[0], log.clicks.shape)
    return curves[log.column(context).codes]
