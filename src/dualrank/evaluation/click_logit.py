"""Where on a list a click falls, as a regression: P(k | a click) = softmax_k(w · x_k + φ_k).

`x` are numbers of the document at rank k, such as a ranker's score, and φ is free: whatever the
position does goes into it. The log-likelihood is concave, and Newton's method finds its summit. For
users who stop after a click there is the regression of clicks on what was examined, `ReadLogit`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

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

    def part(self, chosen: NDArray[np.bool_]) -> Self:
        """Some of the lists."""
        arrays = {f.name: getattr(self, f.name)[chosen] for f in fields(self)}
        return replace(self, **arrays)

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

    def errors(self, at: Floats, queries: NDArray[np.integer]) -> Floats:
        """The standard error of every parameter over queries (a sandwich), φ against the first."""
        _, query = np.unique(queries, return_inverse=True)
        slopes = np.stack([np.bincount(query, column) for column in self.slopes(at).T], axis=1)
        inverse = np.linalg.inv(self.information(at) + RIDGE * np.eye(len(at)))
        weights = self.inputs.shape[2]
        against = np.eye(len(at))
        against[weights:, weights] -= 1
        covariance = against @ inverse @ slopes.T @ slopes @ inverse @ against.T
        found: Floats = np.sqrt(np.diag(covariance).clip(min=0))
        return found

    def centred(self) -> tuple[Self, Floats]:
        """With numbers as they differ from the mean of their rank, and these means.

        What is the same on all lists cannot be told from φ: centred, it is left to it. The φ of the
        numbers as they were is that of the centred ones less means @ w.
        """
        means: Floats = self.inputs.sum(axis=0) / np.maximum(self.mask.sum(axis=0), 1)[:, None]
        apart = np.where(self.mask[:, :, None], self.inputs - means, 0.0)
        return replace(self, inputs=apart), means

    def fit(self, ridge: float | Floats = RIDGE, around: Floats | None = None) -> Floats:
        """The parameters of greatest likelihood, less ridge/2 · (w − around)² for each of them.

        A little ridge keeps φ finite where a rank was never clicked, and fixes its free constant.
        """
        count = sum(self.inputs.shape[1:])
        centre = np.zeros(count) if around is None else around
        pull = np.broadcast_to(ridge, count)

        def value(at: Floats) -> float:
            return float(self.log_likelihood(at).sum() - pull @ (at - centre) ** 2 / 2)

        parameters = centre.copy()
        best = value(parameters)
        for _ in range(NEWTON_STEPS):
            slope = self.slopes(parameters).sum(axis=0) - pull * (parameters - centre)
            step = np.linalg.solve(self.information(parameters) + np.diag(pull), slope)
            while (reached := value(parameters + step)) < best and np.abs(step).max() > TOLERANCE:
                step = step / 2
            gained, parameters, best = reached - best, parameters + step, reached
            if gained <= TOLERANCE * abs(best):
                break
        return parameters

    def fit_weights(self, ridge: float, around: Floats, free: int = 0) -> Floats:
        """As `fit`, with no negative w but the last `free` of them.

        `ridge` draws w towards `around`. What would be negative is left out, the most negative
        first.
        """
        bound, depth = len(around), self.inputs.shape[1]
        used = np.arange(bound)
        last = np.arange(bound, bound + free)
        parameters = np.zeros(bound + free + depth)
        while True:
            part = replace(self, inputs=self.inputs[:, :, np.append(used, last)])
            pull = np.append(np.full(len(used), ridge), np.full(free + depth, RIDGE))
            found = part.fit(pull, np.append(around[used], np.zeros(free + depth)))
            if len(used) == 0 or found[: len(used)].min() >= 0:
                parameters[np.append(used, np.arange(bound, len(parameters)))] = found
                return parameters
            used = np.delete(used, found[: len(used)].argmin())

    def utilities(self, parameters: Floats) -> Floats:
        """w · x_k + φ_k."""
        count = self.inputs.shape[2]
        found: Floats = self.inputs @ parameters[:count] + parameters[count:]
        return found

    def _log_p(self, parameters: Floats) -> Floats:
        utility = self.utilities(parameters)
        utility = np.where(self.mask, utility, -np.inf)
        utility -= utility.max(axis=1, keepdims=True)
        normalised: Floats = utility - np.log(np.exp(utility).sum(axis=1, keepdims=True))
        return normalised


@dataclass(frozen=True, eq=False)
class ReadLogit(ClickLogit):
    """P(click at k | k was examined) = σ(w · x_k + φ_k), where it is known what was examined.

    `examined` is in how many sessions each document was.
    """

    examined: Floats

    def log_likelihood(self, parameters: Floats) -> Floats:
        """Σ_k clicks_k u_k − examined_k log(1 + e^{u_k}), list by list."""
        utility = self.utilities(parameters)
        terms = self.clicks * utility - self.examined * np.logaddexp(0.0, utility)
        likelihood: Floats = np.where(self.mask, terms, 0.0).sum(axis=1)
        return likelihood

    def slopes(self, parameters: Floats) -> Floats:
        """The derivative of the log-likelihood in every parameter, list by list."""
        residual = np.where(self.mask, self.clicks - self.examined * self._chance(parameters), 0.0)
        return np.hstack([np.einsum("lk,lkn->ln", residual, self.inputs), residual])

    def information(self, parameters: Floats) -> Floats:
        """The negative second derivative, over all lists."""
        p = self._chance(parameters)
        bend = np.where(self.mask, self.examined * p * (1 - p), 0.0)
        across = np.einsum("lk,lkn->nk", bend, self.inputs)
        within = np.einsum("lk,lkn,lkm->nm", bend, self.inputs, self.inputs)
        return np.block([[within, across], [across.T, np.diag(bend.sum(axis=0))]])

    def _chance(self, parameters: Floats) -> Floats:
        chance: Floats = 1 / (1 + np.exp(-self.utilities(parameters)))
        return chance
