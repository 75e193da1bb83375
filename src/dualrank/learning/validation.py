"""How the best ranker of a run is recognised: on grades, or on clicks that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.evaluation.metrics import Evaluator
from dualrank.propensity.propensity import Propensity


class Predictor(Protocol):
    """Anything that scores a matrix of documents."""

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """One score per row."""


def on_grades(
    features: NDArray[np.float32], dataset: Dataset, metric: str
) -> Callable[[Predictor], float]:
    """The metric on judged queries; `features` are the scaled ones of `dataset`."""
    evaluator = Evaluator(dataset, [metric])
    return lambda ranker: evaluator(ranker.predict(features))[metric]


def on_held_out_clicks(
    features: NDArray[np.float32], log: ClickLog, believed: Callable[[], Propensity | None]
) -> Callable[[Predictor], float]:
    """How high the clicked documents of held-out sessions stand, by the propensity believed now.

        Σ w_i c_i / log2(1 + rank_i)  /  Σ w_i c_i

    over all clicks, with inverse propensity weights w. It is self-normalised, so values from
    different propensities can be compared, as they must be while dual learning moves its own.
    """
    documents, mask = log.lists.documents, log.lists.mask
    clicks = log.clicks_per_list.astype(np.float64)
    rows, position_of = np.unique(documents[mask], return_inverse=True)
    matrix = np.ascontiguousarray(features[rows])

    def value(ranker: Predictor) -> float:
        scores = np.full(documents.shape, -np.inf)
        scores[mask] = ranker.predict(matrix)[position_of]
        order = np.argsort(-scores, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(documents.shape[1])[None], axis=1)
        propensity = believed()
        weights = 1.0 if propensity is None else propensity.weights[: documents.shape[1]]
        weighted = weights * clicks
        return float((weighted / np.log2(ranks + 2)).sum() / weighted.sum())

    return value
