"""Clicks explained by features and position at once, by least squares.

    E[c] = β_k + α_k r(x),        r(x) = e^{w·x + b}

What a position does to clicks is told apart from what the logging ranker put there by the features,
as in regression-EM (Wang et al. 2018, Agarwal et al. 2019), so that it needs no document to be seen
at two positions; whatever of relevance the features miss and the logging ranker knew is taken for
position. Only means are used: the clicks of a session may depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog

MOST_LISTS = 10_000
"""More lists tell no more of two numbers a position."""
RIDGE = 1.0
STEPS = 50
LARGEST = 5.0
SMALLEST_GAIN = 0.01

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClickRegression:
    """α and β by position, the largest α being 1, and w with b at its end."""

    slopes: Floats
    offsets: Floats
    weights: Floats

    def relevance(self, features: NDArray[np.float32]) -> Floats:
        """r(x), on the scale of clicks where α is 1."""
        return _relevance(features @ self.weights[:-1] + self.weights[-1])


def regress_clicks(
    log: ClickLog,
    features: NDArray[np.float32],
    exposure: Floats | None = None,
    seed: int = 0,
) -> ClickRegression:
    """The regression by Gauss and Newton's method, in nats of a normal error.

    Where `exposure` is given, `[lists, positions]`, it stands for α, and β is 0.
    """
    lists, depth = np.arange(len(log.lists)), log.lists.depth
    if len(lists) > MOST_LISTS:
        lists = np.random.default_rng(seed).choice(lists, MOST_LISTS, replace=False)
    mask = log.lists.mask[lists]
    of_cell = np.nonzero(mask)
    sessions = log.sessions_per_list[lists][of_cell[0]].astype(np.float64)
    clicks = log.clicks_per_list[lists][mask].astype(np.float64)
    rate = _rates(clicks, sessions, of_cell[1], depth)
    problem = _Problem(
        np.column_stack([features[log.lists.documents[lists][mask]], np.ones(len(clicks))]),
        np.eye(depth)[of_cell[1]] if exposure is None else np.zeros((len(clicks), 0)),
        None if exposure is None else exposure[lists][mask],
        clicks / np.maximum(sessions, 1),
        sessions / (rate * (1 - rate))[of_cell[1]],
    )
    found = problem.solve(np.append(2 * rate, rate / 2) if exposure is None else np.zeros(0))
    if exposure is not None:
        return ClickRegression(np.ones(depth), np.zeros(depth), found)
    slopes, offsets, weights = found[:depth], found[depth : 2 * depth], found[2 * depth :]
    most = int(slopes.argmax())
    weights[-1] += np.log(max(slopes[most], 1e-12))
    return ClickRegression(_bounded(slopes / max(slopes[most], 1e-12), rate), offsets, weights)


def _bounded(slopes: Floats, rate: Floats) -> Floats:
    """α without what few clicks, or clicks that depend on those above, make nonsense of.

    Below the position of the largest α, it falls no faster than the click-through: else documents
    would be the better the further down they stand. Above, trust may take three quarters of it.
    """
    most = int(slopes.argmax())
    least = np.where(np.arange(len(slopes)) > most, rate / rate[most], 0.25)
    return np.clip(slopes, np.minimum(least, 1.0), 1.0)


def _rates(clicks: Floats, sessions: Floats, position: NDArray[np.intp], depth: int) -> Floats:
    """Click-through by position, never 0 or 1."""
    return (np.bincount(position, clicks, depth) + 0.5) / (
        np.bincount(position, sessions, depth) + 1
    )


def _relevance(log_relevance: Floats) -> Floats:
    return np.exp(np.minimum(log_relevance, LARGEST))


@dataclass(frozen=True, eq=False)
class _Problem:
    """½ Σ v (c − β_k − α_k r)² with a ridge on w, over (α, β, w), or w alone with a given α.

    One row per displayed document: its features and 1 in `x`, its position in `at`, as one of many.
    """

    x: Floats
    at: Floats
    given: Floats | None
    clicks: Floats
    precision: Floats

    def solve(self, start: Floats) -> Floats:
        """Steps that never go uphill."""
        now = np.concatenate([start, np.zeros(self.x.shape[1])])
        now[-1] = np.log(0.25)
        residual, jacobian = self._at(now)
        height = self._height(now, residual)
        for _ in range(STEPS):
            weighted = jacobian * self.precision[:, None]
            bend = jacobian.T @ weighted + np.diag(self._ridge(now))
            bend += np.diag(1e-6 * np.diag(bend) + 1e-9)
            step = np.linalg.solve(bend, residual @ weighted - self._ridge(now) * now)
            for _ in range(30):
                residual, jacobian = self._at(now + step)
                reached = self._height(now + step, residual)
                if reached <= height:
                    break
                step = step / 2
            now, gain, height = now + step, height - reached, reached
            if gain < SMALLEST_GAIN:
                break
        return now

    def _at(self, point: Floats) -> tuple[Floats, Floats]:
        """What is not explained, and ∂(β_k + α_k r)/∂point."""
        depth = self.at.shape[1]
        r = _relevance(self.x @ point[2 * depth :])
        if self.given is not None:
            return self.clicks - self.given * r, (self.given * r)[:, None] * self.x
        slope = self.at @ point[:depth]
        expected = self.at @ point[depth : 2 * depth] + slope * r
        jacobian = np.hstack([self.at * r[:, None], self.at, (slope * r)[:, None] * self.x])
        return self.clicks - expected, jacobian

    def _ridge(self, point: Floats) -> Floats:
        ridge = np.zeros(len(point))
        ridge[2 * self.at.shape[1] : -1] = RIDGE
        return ridge

    def _height(self, point: Floats, residual: Floats) -> float:
        return float(self.precision @ residual**2 + self._ridge(point) @ point**2) / 2
