"""Regression-EM: examination by position, relevance by a ranker on features.

Wang et al., "Position Bias Estimation for Unbiased Learning to Rank in Personal Search" (WSDM
2018). Where documents are not seen often enough to have a relevance of their own each, a regression
supplies it:

    P(c = 1 | x, k) = p_k · σ(f(x))

The E-step asks how likely an unclicked document was examined, and relevant; the M-step sets p_k to
the mean examination and fits f to the relevance. Only the product is observed, so that the scale of
p is known by the shape of σ alone; p_1 ≤ 1 bounds it.

The hidden layers of a network are trained by these steps. The curve and the last layer are then
brought to the summit of the likelihood by Newton's method, all of them where f is linear; EM would
climb the same hill more slowly. Intervals come from one Newton step per resample, for the curve and
the last layer together; hidden layers are taken as given, which makes them a little narrow.

It assumes that the features tell what made people click. Whatever of relevance they miss and the
logging ranker knew is taken for examination: the better the logger, the more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError
from dualrank.propensity.bootstrap import Evidence
from dualrank.propensity.grouped_clicks import Cells, GroupedClicks
from dualrank.rankers.network import DNN, Linear, Network

ROUNDS = 25
STEPS_PER_ROUND = 40
BATCH = 1_024
RATE = 4e-3
NEWTON_STEPS = 50
TOLERANCE = 1e-7
PENALTY = 1.0
DOCUMENTS_PER_BLOCK = 65_536


def regression_em(
    grouped: GroupedClicks, dataset: Dataset, ranker: DNN | Linear | None = None, seed: int = 0
) -> Evidence:
    """The most likely curve beside a regression of relevance, and the groups' scores at it."""
    clicks = np.bincount(grouped.cells.position, grouped.cells.clicks, grouped.depth)
    if (clicks == 0).any():
        position = int(np.flatnonzero(clicks == 0)[0])
        raise DataError(
            f"position {position + 1} was never clicked in {grouped.impressions[position]} sessions"
        )
    if grouped.lists.documents.max() >= dataset.document_count:
        raise DataError(
            f"the log shows document {grouped.lists.documents.max()}, but there are features of "
            f"{dataset.document_count}; give the data set with which the log was read"
        )
    cells = _numbered(grouped.cells)
    shown = np.unique(grouped.cells.document)
    features = Scaler.fit(dataset.features, kind="standard").transform(dataset.features[shown])
    ranker = Linear() if ranker is None else ranker
    if isinstance(ranker, DNN) and ranker.hidden:
        network = ranker.build(features.shape[1], seed)
        features = _hidden_layer(network, features, cells, seed)
    # Of documents that are all alike the scale of p cannot be told: tell them apart first.
    summit = _climb(_climb(_Point.start(cells, features), scale=False))
    depth = grouped.depth
    scores = summit.scores(grouped.group_count)
    free = np.flatnonzero(summit.free(scores.sum(axis=0)))
    solved = np.zeros((scores.shape[1],) * 2)
    solved[np.ix_(free, free)] = np.linalg.inv(summit.information()[np.ix_(free, free)])

    def one_step(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return summit.log_p + sums @ solved[:, :depth]

    def missing(k: int) -> str:
        return f"examination at position {k + 1} has no finite estimate"

    return Evidence("regression-em", scores, one_step, grouped.impressions, missing)


@dataclass(frozen=True, eq=False)
class _Point:
    """A curve and a linear regression on `inputs`, whose last column is 1."""

    cells: Cells
    inputs: NDArray[np.float32]
    log_p: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def start(cls, cells: Cells, features: NDArray[np.float32]) -> _Point:
        """Relevance the same for all documents, examination in proportion to clicks."""
        clicks = np.bincount(cells.position, cells.clicks)
        rate = clicks / np.bincount(cells.position, cells.impressions)
        inputs = np.column_stack([features, np.ones(len(features), dtype=np.float32)])
        weights = np.zeros(inputs.shape[1])
        weights[-1] = np.log(rate[0] / (1 - min(rate[0], 0.99)))
        return cls(cells, inputs, np.log(rate / rate[0]), weights)

    def _relevance(self) -> NDArray[np.float64]:
        return expit((self.inputs @ self.weights.astype(np.float32)).astype(np.float64))

    def _product(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """u = p_k σ(f) and 1 − σ(f) of every cell."""
        relevance = self._relevance()[self.cells.document]
        return np.exp(self.log_p[self.cells.position]) * relevance, 1 - relevance

    def objective(self) -> float:
        """The log-likelihood with a weak penalty on the weights; −∞ beyond probabilities."""
        u, _ = self._product()
        if not (np.isfinite(u).all() and u.max() < 1 and u.min() > 0):
            return -np.inf
        left = self.cells.impressions - self.cells.clicks
        penalty = PENALTY / 2 * (self.weights[:-1] @ self.weights[:-1])
        return float(self.cells.clicks @ np.log(u) + left @ np.log1p(-u) - penalty)

    def scores(self, groups: int) -> NDArray[np.float64]:
        """The gradient in (log p, weights), one row per group."""
        cells, depth = self.cells, self.cells.depth
        u, irrelevance = (values[cells.cell] for values in self._product())
        residual = cells.clicked - (cells.shown - cells.clicked) * u / (1 - u)
        place = cells.group * depth + cells.position[cells.cell]
        on_curve = np.bincount(place, residual, groups * depth).reshape(groups, depth)
        pulls = csr_array(
            (residual * irrelevance, (cells.group, cells.document[cells.cell])),
            shape=(groups, len(self.inputs)),
        )
        on_weights = np.zeros((groups, len(self.weights)))
        for start in range(0, len(self.inputs), DOCUMENTS_PER_BLOCK):
            block = slice(start, start + DOCUMENTS_PER_BLOCK)
            on_weights += pulls[:, block] @ self.inputs[block].astype(np.float64)
        on_weights[:, :-1] -= PENALTY * self.weights[:-1] / groups
        return np.concatenate([on_curve, on_weights], axis=1)

    def information(self) -> NDArray[np.float64]:
        """The expected curvature of the objective in (log p, weights)."""
        cells, depth, documents = self.cells, self.cells.depth, len(self.inputs)
        u, irrelevance = self._product()
        weight = cells.impressions * u / (1 - u)
        information = np.zeros((depth + len(self.weights),) * 2)
        curve, rest = slice(0, depth), slice(depth, None)
        information[curve, curve] = np.diag(np.bincount(cells.position, weight, depth))
        across = csr_array(
            (weight * irrelevance, (cells.position, cells.document)), shape=(depth, documents)
        )
        within = np.bincount(cells.document, weight * irrelevance**2, documents)
        for start in range(0, documents, DOCUMENTS_PER_BLOCK):
            block = slice(start, start + DOCUMENTS_PER_BLOCK)
            x = self.inputs[block].astype(np.float64)
            information[curve, rest] += across[:, block] @ x
            information[rest, rest] += (x * within[block, None]).T @ x
        information[rest, curve] = information[curve, rest].T
        diagonal = np.einsum("ii->i", information)
        diagonal[depth:-1] += PENALTY
        # Where no feature tells documents apart, nothing tells the scale of p.
        diagonal += 1e-9 * diagonal.max()
        return information

    def free(self, slope: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which parameters may move: all but p_1 where it is 1 and would grow."""
        free = np.ones(len(slope), dtype=bool)
        free[0] = self.log_p[0] < 0 or slope[0] < 0
        return free

    def moved(self, step: NDArray[np.float64]) -> _Point:
        """The point a step away."""
        depth = len(self.log_p)
        log_p = self.log_p + step[:depth]
        log_p[0] = min(log_p[0], 0.0)
        return replace(self, log_p=log_p, weights=self.weights + step[depth:])


def _climb(here: _Point, *, scale: bool = True) -> _Point:
    """Fisher's scoring, never downhill; without `scale`, p_1 stays where it is."""
    height = here.objective()
    for _ in range(NEWTON_STEPS):
        slope = here.scores(int(here.cells.group.max()) + 1).sum(axis=0)
        free = np.flatnonzero(here.free(slope) if scale else np.arange(len(slope)) > 0)
        step = np.zeros(len(slope))
        step[free] = np.linalg.solve(here.information()[np.ix_(free, free)], slope[free])
        for _ in range(30):
            there = here.moved(step)
            reached = there.objective()
            if reached >= height - 1e-10 * abs(height):
                break
            step = step / 2
        gained = abs(reached - height)
        here, height = there, reached
        if gained < TOLERANCE * abs(height) and np.abs(step).max() < 1e-4:
            break
    return here


def _hidden_layer(
    network: Network, features: NDArray[np.float32], cells: Cells, seed: int
) -> NDArray[np.float32]:
    """Train the network by rounds of E- and M-steps; what its last hidden layer makes of x."""
    rng = np.random.default_rng([seed, 0x_2E6E])
    x = torch.from_numpy(features)
    documents = len(features)
    shown = np.bincount(cells.document, cells.impressions, documents)
    tickets = np.cumsum(shown)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    clicks = np.bincount(cells.position, cells.clicks)
    impressions = np.bincount(cells.position, cells.impressions)
    p = np.minimum(2 * clicks / impressions, 0.9)
    left = cells.impressions - cells.clicks
    for _ in range(ROUNDS):
        gamma = expit(network.predict(features).astype(np.float64))[cells.document]
        at = p[cells.position]
        neither = 1 - at * gamma
        relevant = cells.clicks + left * gamma * (1 - at) / neither
        examined = cells.clicks + left * at * (1 - gamma) / neither
        p = np.bincount(cells.position, examined) / impressions
        labels = torch.from_numpy(np.bincount(cells.document, relevant, documents) / shown).float()
        for _ in range(STEPS_PER_ROUND):
            luck = rng.random(BATCH) * tickets[-1]
            chosen = torch.from_numpy(np.searchsorted(tickets, luck, side="right"))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                network(x[chosen]), labels[chosen]
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return _inside(network, features)


@torch.no_grad()
def _inside(network: Network, features: NDArray[np.float32]) -> NDArray[np.float32]:
    h = torch.from_numpy(features)
    layers = zip(network.weights[:-1], network.biases[:-1], strict=True)
    for weight, bias in layers:
        h = torch.nn.functional.elu(torch.addmm(bias, h, weight.t()))
    return h.numpy()


def _numbered(cells: Cells) -> Cells:
    """The same cells with documents numbered from 0 without gaps."""
    return replace(cells, document=np.unique(cells.document, return_inverse=True)[1])
