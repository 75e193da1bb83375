"""Where on a list a click falls, as a regression: P(k | a click) = softmax_k(w · x_k + φ_k).

`x` are numbers of the document at rank k, such as a ranker's score, and φ is free: whatever the
position does goes into it. The log-likelihood is concave, and Newton's method finds its summit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEWTON_STEPS = 50
TOLERANCE = 1e-10
RIDGE = 0.01

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClickLogit:
    """Lists with their clicks, `[lists, ranks]`, and what is known of their documents.

    `inputs` is `[lists, ranks, numbers]`, 0 at padding. Parameters are w, and after it φ.
    """

    inputs: Floats
    clicks: Floats
    mask: NDArray[np.bool_]

    def log_likelihood(self, parameters: Floats) -> Floats:
        """Σ_k clicks_k log P(k | a click), list by list."""
        log_p = np.where(self.mask, self._log_p(parameters), 0.0)
        likelihood: Floats = (self.clicks * log_p).sum(axis=1)
        return likelihood

    def slopes(self, parameters: Floats) -> Floats:
        """The derivative of the log-likelihood in every parameter, list by list."""
        expected = self.clicks.sum(axis=1, keepdims=True) * np.exp(self._log_p(parameters))
        residual = self.clicks - expected
        return np.hstack([np.einsum("lk,lkn->ln", residual, self.inputs), residual])

    def information(self, parameters: Floats) -> Floats:
        """The negative second derivative, over all lists."""
        p, total = np.exp(self._log_p(parameters)), self.clicks.sum(axis=1)
        expected = total[:, None] * p
        mean = np.einsum("lk,lkn->ln", p, self.inputs)
        apart = self.inputs - mean[:, None]
        across = np.einsum("lk,lkn->nk", expected, apart)
        within = np.einsum("lk,lkn,lkm->nm", expected, apart, apart)
        by_rank = np.diag(expected.sum(axis=0)) - expected.T @ p
        return np.block([[within, across], [across.T, by_rank]])

    def fit(self, ridge: float = RIDGE) -> Floats:
        """The parameters of greatest likelihood.

        A little ridge keeps φ finite where a rank was never clicked, and fixes its free constant.
        """

        def value(at: Floats) -> float:
            return float(self.log_likelihood(at).sum() - ridge / 2 * at @ at)

        parameters = np.zeros(sum(self.inputs.shape[1:]))
        best = value(parameters)
        for _ in range(NEWTON_STEPS):
            slope = self.slopes(parameters).sum(axis=0) - ridge * parameters
            bend = self.information(parameters) + ridge * np.eye(len(parameters))
            step = np.linalg.solve(bend, slope)
            while (reached := value(parameters + step)) < best and np.abs(step).max() > TOLERANCE:
                step = step / 2
            gained, parameters, best = reached - best, parameters + step, reached
            if gained <= TOLERANCE * abs(best):
                break
        return parameters

    def _log_p(self, parameters: Floats) -> Floats:
        count = self.inputs.shape[2]
        utility = self.inputs @ parameters[:count] + parameters[count:]
        utility = np.where(self.mask, utility, -np.inf)
        utility -= utility.max(axis=1, keepdims=True)
        normalised: Floats = utility - np.log(np.exp(utility).sum(axis=1, keepdims=True))
        return normalised
