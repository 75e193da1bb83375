"""How the best ranker of a run is recognised: on grades, or on clicks that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.evaluation.evaluator import Evaluator
from dualrank.propensity.propensity import Propensity


class Predictor(Protocol):
    """Anything that scores a matrix of documents."""

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """One score per row."""


class Validation(Protocol):
    """A measurement of a ranker, and what it is worth by what is believed at the time.

    The two are apart because dual learning moves its propensities: the best ranker so far must be
    valued anew, with today's, before another is compared with it.
    """

    def measure(self, ranker: Predictor) -> list[float]:
        """What is observed of a ranker."""

    def value(self, measured: list[float]) -> float:
        """What the observation is worth now; higher is better."""


class OnGrades:
    """A metric on judged queries; `features` are the scaled ones of `dataset`."""

    def __init__(self, features: NDArray[np.float32], dataset: Dataset, metric: str) -> None:
        if not dataset.require_grades().any():
            raise DataError("no validation document has a grade above 0: all rankers look alike")
        self._features = features
        self._metric = metric
        self._evaluator = Evaluator(dataset, [metric])

    def measure(self, ranker: Predictor) -> list[float]:
        """The metric."""
        return [self._evaluator(ranker.predict(self._features))[self._metric]]

    def value(self, measured: list[float]) -> float:
        """The metric."""
        return measured[0]


class OnHeldOutClicks:
    """How high the clicked documents of held-out sessions stand.

        Σ_i w_i Σ c_i / log2(1 + rank_i)  /  Σ_i w_i Σ c_i

    over positions i and all clicks c_i there, with the inverse propensity weights w believed now.
    What is measured are the inner sums, one per displayed position. Where a click model has
    extracted the `relevance` of documents, that stands in the place of their clicks.
    """

    def __init__(
        self,
        features: NDArray[np.float32],
        log: ClickLog,
        believed: Callable[[], Propensity | None],
        max_weight: float = np.inf,
        relevance: NDArray[np.float32] | None = None,
    ) -> None:
        self._documents, self._mask = log.lists.documents, log.lists.mask
        self._clicks = log.clicks_per_list.astype(np.float64)
        if relevance is not None:
            self._clicks = log.sessions_per_list[:, None] * log.lists.gather(relevance).astype(
                float
            )
        self._believed = believed
        self._max_weight = max_weight
        rows, self._row_of = np.unique(self._documents[self._mask], return_inverse=True)
        self._features = np.ascontiguousarray(features[rows])

    def measure(self, ranker: Predictor) -> list[float]:
        """Discounted clicks by the position at which they were made."""
        scores = np.full(self._documents.shape, -np.inf)
        scores[self._mask] = ranker.predict(self._features)[self._row_of]
        order = np.argsort(-scores, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(self._documents.shape[1])[None], axis=1)
        return (self._clicks / np.log2(ranks + 2)).sum(axis=0).tolist()

    def value(self, measured: list[float]) -> float:
        """The weighted mean under the propensity believed now."""
        propensity = self._believed()
        weights = np.ones(len(measured))
        if propensity is not None:
            weights = np.minimum(propensity.weights[: len(measured)], self._max_weight)
        return float(weights @ np.asarray(measured) / (weights @ self._clicks.sum(axis=0)))
