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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit
from torch import Tensor

from dualrank.corrections.correction import Basis, Correction
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError, SettingsError
from dualrank.learning.feedback import Labelled
from dualrank.learning.loop import Loop
from dualrank.propensity.bootstrap import RESAMPLES, Evidence, with_intervals
from dualrank.propensity.grouped_clicks import Cells, GroupedClicks
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown
from dualrank.rankers.network import Linear, Network
from dualrank.rankers.ranker import RankerSettings, Signal, Step
from dualrank.settings import TrainingSettings

TRAINING = TrainingSettings(steps=1_000, batch_size=128, optimizer="adagrad", learning_rate=0.2)
MOVE = 0.05
NEWTON_STEPS = 50
LONGEST_STEP = 5.0
TOLERANCE = 1e-7
PENALTY = 1.0
DOCUMENTS_PER_BLOCK = 65_536


def estimate_by_regression_em(
    log: ClickLog | GroupedClicks,
    dataset: Dataset,
    *,
    ranker: RankerSettings | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Propensity:
    """The curve with its intervals; `ranker` is the regression, linear unless given."""
    grouped = log if isinstance(log, GroupedClicks) else GroupedClicks.of(log, seed=seed)
    evidence = regression_em(grouped, dataset, ranker, seed)
    return with_intervals(evidence, grouped, resamples=resamples, seed=seed)


def regression_em(
    grouped: GroupedClicks, dataset: Dataset, ranker: RankerSettings | None = None, seed: int = 0
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
    hidden = _hidden_layer(ranker or Linear(), features, grouped, cells, seed)
    features = features if hidden is None else hidden
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
        rate = _click_through(cells)
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
        wanted = np.linalg.solve(here.information()[np.ix_(free, free)], slope[free])
        step[free] = np.clip(wanted, -LONGEST_STEP, LONGEST_STEP)
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


class RegressionEM(Correction):
    """The E- and M-steps of the hidden layers, as a correction on the training loop.

    With γ = σ(f) and mean clicks c, an unclicked document was relevant, or was examined, with

        P(r | c) = c + (1 − c) γ (1 − p)/(1 − pγ),    P(o | c) = c + (1 − c) p (1 − γ)/(1 − pγ).

    γ − P(r | c) is the slope of the negative log-likelihood in f, and p moves towards the mean of
    P(o | c) at its position. Where labels are sums, c and 1 are sums over as many sessions.
    """

    clicked_only = False
    learns = True

    def __init__(self, examination: Tensor) -> None:
        self._p = examination

    @classmethod
    def build(cls, basis: Basis) -> RegressionEM:
        """Examination the same at all positions."""
        return cls(torch.full((basis.depth,), 0.5))

    def start(self, device: torch.device) -> None:
        """Move p."""
        self._p = self._p.to(device)

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Expected relevance for the ranker, expected examination for p."""
        gamma, c, sessions = torch.sigmoid(scores), shown.labels, shown.weight * shown.times
        u = self._p * gamma
        skipped = (sessions - c) / (1 - u)
        relevant = c + skipped * gamma * (1 - self._p)
        examined = c + skipped * self._p * (1 - gamma)
        log_u = torch.log(self._p) + torch.nn.functional.logsigmoid(scores)
        loss = -(c * log_u + (sessions - c) * torch.log1p(-u))
        return Signal(
            loss=loss.sum(),
            slope=gamma * sessions - relevant,
            curvature=lambda: gamma * (1 - gamma) * sessions,
            clicks=c.sum(),
            evidence=[examined.sum(0), sessions.sum(0)],
        )

    def learn(self, evidence: Sequence[Tensor], step: Step) -> None:
        """Move p some of the way to the mean examination of these lists."""
        examined, shown = evidence
        mean = torch.where(shown > 0, examined / shown.clamp(min=1), self._p)
        self._p = (self._p + MOVE * (mean - self._p)).clamp(1e-4, 1 - 1e-4)

    def propensity(self) -> Propensity:
        """The examination that is believed, p."""
        return Propensity.of(self._p.double().cpu().numpy(), method="regression-em")

    def state(self) -> dict[str, Tensor]:
        """p."""
        return {"p": self._p}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with p."""
        self._p = state["p"].to(self._p.device)


def _hidden_layer(
    settings: RankerSettings,
    features: NDArray[np.float32],
    grouped: GroupedClicks,
    cells: Cells,
    seed: int,
) -> NDArray[np.float32] | None:
    """What the last hidden layer of a trained network makes of x; None where there is none."""
    network = settings.build(features.shape[1], seed)
    if not isinstance(network, Network):
        raise SettingsError(f"regression-em takes a dnn or a linear ranker, not {settings.kind}")
    if len(network.sizes) < 3:
        return None
    lists = len(grouped.lists)
    sessions = np.bincount(grouped.list_of, grouped.sessions, lists).astype(np.int64)
    clicks = np.zeros((lists, grouped.depth))
    np.add.at(clicks, grouped.list_of, grouped.clicks)
    number = np.full(int(grouped.lists.documents.max()) + 2, PADDING, dtype=np.int32)
    shown = np.unique(grouped.lists.documents[grouped.lists.mask])
    number[shown] = np.arange(len(shown))
    renumbered = RankedLists(number[grouped.lists.documents], grouped.lists.queries)
    feedback = Labelled(renumbered, clicks / np.maximum(sessions, 1)[:, None], sessions)
    rate = np.bincount(cells.position, cells.clicks) / np.bincount(
        cells.position, cells.impressions
    )
    start = torch.from_numpy(np.minimum(2 * rate, 0.9)).float()
    training = replace(TRAINING, seed=seed)
    Loop(network, torch.from_numpy(features), feedback, RegressionEM(start), training).run()
    return network.last_hidden(features)


def _click_through(cells: Cells) -> NDArray[np.float64]:
    """By position."""
    clicks = np.bincount(cells.position, cells.clicks)
    return clicks / np.bincount(cells.position, cells.impressions)


def _numbered(cells: Cells) -> Cells:
    """The same cells with documents numbered from 0 without gaps."""
    return replace(cells, document=np.unique(cells.document, return_inverse=True)[1])
