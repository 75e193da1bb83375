"""One ranker out of several: weights of their scores, fitted to clicks that none was trained on.

Each candidate is right under assumptions of its own, and their errors differ, so that a sum is
often better than any. The sum is judged as a ranker is (see `click_check`): with weights w of the
scores f_m and a free φ,

    P(k | a click) = softmax_k(Σ_m w_m f_m(x_k) + φ_k)

or, where users stop after a click, by the likelihood of clicks among what they read (`ReadLogit`).
Weights are not negative, and drawn towards given shares: it takes so many clicks to say something
else. Clicks on one list say much the same thing, so they count for fewer than they are, by the
ratio of the slopes' variance over queries to what independent clicks would have; and no number of
clicks makes the model of clicks true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.evaluation.click_check import Lead
from dualrank.evaluation.click_logit import RIDGE, ClickLogit, ReadLogit
from dualrank.learning.feedback import LoggedClicks, ReadClicks
from dualrank.learning.logging_scores import Ground, spread_of
from dualrank.learning.model import Model

PRIOR_CLICKS = 1_000.0
"""How many clicks the prior is worth."""
MOST_CLICKS = 50_000
"""More clicks move weights no further: the likelihood is a model, and not quite right."""
MOST_CELLS = 20_000_000
"""Numbers that a regression holds at a time; of larger logs, some queries speak for all."""
LEAST_SHARE = 0.02
"""A smaller part of the sum is left out."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Clicks that no candidate was trained on, and how the candidates score their documents."""

    log: ClickLog
    dataset: Dataset | None
    ground: Ground | None
    reads: bool
    """Whether users read from the top and stop, so that clicks tell what was examined."""
    context: str | None = None

    def predict(self, model: Model) -> NDArray[np.float32]:
        """A model's scores of the candidates of these queries, 0 for those of others."""
        assert self.dataset is not None, "models score the documents of a data set"
        queries = np.unique(self.log.lists.queries)
        scores = np.zeros(self.dataset.document_count, np.float32)
        own = np.isin(self.dataset.query_of_document, queries)
        scores[own] = model.predict(self.dataset.take(queries))
        return scores

    def scores(self, model: Model) -> Floats:
        """A model's scores of the documents displayed, by features, and by order if it knows it."""
        assert self.dataset is not None, "models score the documents of a data set"
        lists = self.log.lists
        scores = lists.gather(self.predict(model)).astype(np.float64)
        if self.ground is not None and (worth := model.training.get("worth_of_ground")) is not None:
            scores += worth * self.ground.by_order(lists, self.dataset)
        return scores

    def logit(self, columns: list[Floats]) -> tuple[ClickLogit, NDArray[np.int32]]:
        """The regression of the clicks on some columns, and the query of each of its rows."""
        kind = ReadClicks if self.reads else LoggedClicks
        feedback = kind(self.log, self.context)
        batch = feedback.everything(1, np.random.default_rng(0))
        assert batch.queries is not None
        rows = _some(batch.queries, len(columns), batch.contexts, batch.documents.shape[1])
        inputs = np.stack(columns, axis=-1)[feedback.list_of[rows]]
        if batch.contexts is not None:
            by_context = _by_context(batch.contexts[rows], batch.contexts.max(), inputs.shape[1])
            inputs = np.concatenate([inputs, by_context], axis=2)
        clicks, mask = batch.labels[rows].astype(np.float64), batch.documents[rows] >= 0
        if batch.examined is not None:
            examined = batch.examined[rows].astype(np.float64)
            return ReadLogit(inputs, clicks, mask, examined), batch.queries[rows]
        return ClickLogit(inputs, clicks, mask), batch.queries[rows]


def weigh(
    candidates: Mapping[str, Model], held_out: HeldOut, shares: Mapping[str, float]
) -> dict[str, float]:
    """The weight of candidates' scores in the sum, the largest part first.

    `shares` are what candidates would have if no click spoke, once their scores differ alike, on
    the scale that the first was trained to. What would be a small part of the sum is left out.
    """
    mask, names = held_out.log.lists.mask, list(candidates)
    columns = [held_out.scores(model) for model in candidates.values()]
    spreads = np.array([spread_of(column, mask) for column in columns])
    logit, queries = held_out.logit(
        [column / spread for column, spread in zip(columns, spreads, strict=True)]
    )
    free = logit.inputs.shape[2] - len(names)
    prior = spreads[0] * np.array([shares.get(name, 0.0) for name in names])
    start = logit.fit_weights(PRIOR_CLICKS, prior, free)
    trusted = max(1.0, float(logit.clicks.sum()) / MOST_CLICKS)
    pull = PRIOR_CLICKS * trusted * _overdispersion(logit, start, queries)
    weights = logit.fit_weights(pull, prior, free)[: len(names)]
    if not weights.any():
        weights = prior
    kept = [i for i in np.argsort(-weights) if weights[i] >= LEAST_SHARE * weights.sum()]
    return {names[i]: float(weights[i] / spreads[i]) for i in kept}


def add_up(candidates: Mapping[str, Model], weights: Mapping[str, float]) -> Model:
    """One model whose scores are the weighted sum of the candidates'.

    The sum is divided by the weight of the first, which changes no ranking. Its propensity is that
    of the largest part that has one.
    """
    first, *others = weights
    model = candidates[first]
    curves = (candidates[name].propensity for name in weights)
    ranker = model.ranker
    for name in others:
        ranker = ranker.plus(candidates[name].ranker, weights[name] / weights[first])
    propensity = next((curve for curve in curves if curve is not None), None)
    # The optimisers were those of one part.
    optimizers = {} if others else model.optimizers
    return replace(model, ranker=ranker, propensity=propensity, optimizers=optimizers)


def _overdispersion(logit: ClickLogit, at: Floats, queries: NDArray[np.int32]) -> float:
    """How many times the variance of independent clicks the slopes of queries have; at least 1."""
    _, query = np.unique(queries, return_inverse=True)
    slopes = logit.slopes(at)
    by_query = np.stack([np.bincount(query, column) for column in slopes.T], axis=1)
    information = logit.information(at) + RIDGE * np.eye(len(at))
    ratio = np.trace(np.linalg.solve(information, by_query.T @ by_query)) / len(at)
    return max(1.0, float(ratio))


def _some(
    queries: NDArray[np.int32], columns: int, contexts: NDArray[np.int32] | None, depth: int
) -> NDArray[np.integer]:
    """The rows of as many queries, drawn at random, as a regression has room for."""
    if contexts is not None:
        columns += depth * int(contexts.max())
    share = MOST_CELLS / (len(queries) * depth * columns)
    if share >= 1:
        return np.arange(len(queries))
    _, query = np.unique(queries, return_inverse=True)
    drawn = np.random.default_rng(0).random(query.max() + 1) < share
    return np.flatnonzero(drawn[query])


def _by_context(contexts: NDArray[np.int32], last: int, depth: int) -> Floats:
    """A φ for every context but the first, as columns that are 1 on one rank of one context."""
    others = np.arange(1, last + 1)
    on = (contexts[:, None] == others)[:, None, :, None] & np.eye(depth, dtype=bool)[None, :, None]
    found: Floats = on.reshape(len(contexts), depth, -1).astype(np.float64)
    return found


def context_lead(held_out: ClickLog, scores: NDArray[np.floating], name: str, reads: bool) -> Lead:
    """How much better clicks are predicted by a φ for every value of a column than by one for all.

    Both beside the same scores, fitted to one half of the queries and read off the other.
    """
    column = held_out.lists.gather(scores.astype(np.float32)).astype(np.float64)
    column /= spread_of(column, held_out.lists.mask)
    apart, queries = HeldOut(held_out, None, None, reads, name).logit([column])
    common = replace(apart, inputs=apart.inputs[:, :, :1])
    _, query = np.unique(queries, return_inverse=True)
    half = np.random.default_rng(0).permutation(query.max() + 1)[query] % 2
    gain = np.empty(len(query))
    for judged in (half == 0, half == 1):
        for logit, sign in ((apart, 1.0), (common, -1.0)):
            fitted = logit.part(~judged).fit()
            found = sign * logit.part(judged).log_likelihood(fitted)
            gain[judged] = found if sign > 0 else gain[judged] + found
    return Lead.of(np.bincount(query, gain).astype(np.float64), float(apart.clicks.sum()))
