"""How the best ranker of a run is recognised: on grades, or on clicks that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.corrections.correction import Correction
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.ranking import by_rank
from dualrank.errors import DataError
from dualrank.evaluation.click_check import Lead
from dualrank.evaluation.evaluator import Evaluator
from dualrank.learning.feedback import WholeFeedback
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.ranker import Ranker

GROUPS = 50
"""Groups of held-out queries, whose spread tells how much of a difference is luck."""


Measure = Callable[[], list[float]]


class Validation(Protocol):
    """Measurements of a ranker, and what each is worth by what is believed at the time.

    The two are apart because dual learning moves its propensities: the best ranker so far must be
    valued anew, with today's, before another is compared with it. One that has a `name` says in
    words what it measures.
    """

    def measuring(self, ranker: Ranker) -> Measure:
        """What observes a ranker, whenever it is asked to, as learning goes on."""

    def value(self, measured: list[float]) -> float:
        """What the observation is worth now; higher is better."""

    def doubt(self, measured: list[float], other: list[float]) -> float:
        """By how much two values differ by luck: a standard error, or 0 where none is known."""


class OnGrades:
    """A metric on judged queries; `features` are the scaled ones of `dataset`."""

    def __init__(self, features: NDArray[np.float32], dataset: Dataset, metric: str) -> None:
        if not dataset.require_grades().any():
            raise DataError("no validation document has a grade above 0: all rankers look alike")
        self._features, self._offsets = features, dataset.offsets
        self._metric = metric
        self._evaluator = Evaluator(dataset, [metric])
        self.name = f"{metric} of {len(dataset)} judged queries"

    def measuring(self, ranker: Ranker) -> Measure:
        """The metric."""
        scores = ranker.follow(self._features, self._offsets)
        return lambda: [self._evaluator(scores())[self._metric]]

    def value(self, measured: list[float]) -> float:
        """The metric."""
        return measured[0]

    def doubt(self, measured: list[float], other: list[float]) -> float:
        """None is known."""
        return 0.0


class OnLikelihood:
    """How likely what was held out is, by ranker and correction together: minus the loss per label.

    What the ranker is judged with is what was believed at the same step, so that nothing is valued
    anew. Where a click model extracted the relevance of documents, it is their cross entropy with
    the ranker: the loss that is trained, smoother in the ranker than where few documents stand.
    What is measured is the likelihood of groups of queries, whose spread tells luck.
    """

    def __init__(
        self, features: NDArray[np.float32], held_out: WholeFeedback, correction: Correction
    ) -> None:
        self._features, self._correction = features, correction
        batch = held_out.everything(1, np.random.default_rng(0))
        assert batch.queries is not None, "whole feedback names its queries"
        self._lists = RankedLists(batch.documents, batch.queries)
        self._labels = float(batch.labels.sum())
        _, query = np.unique(batch.queries, return_inverse=True)
        groups = np.random.default_rng(0).permutation(query.max() + 1)[query] % GROUPS
        rows = [np.flatnonzero(groups == group) for group in np.unique(groups)]
        self._groups = [(each, batch.take(each)) for each in rows]
        self.name = (
            f"log-likelihood per label of {query.max() + 1} held-out queries, by the method's own "
            "model of clicks"
        )

    def measuring(self, ranker: Ranker) -> Measure:
        """The log-likelihood of every group."""
        scores = ranker.follow_lists(self._features, self._lists)
        return lambda: self._of(torch.from_numpy(scores()))

    def _of(self, scores: torch.Tensor) -> list[float]:
        device = self._correction.device
        signals = (
            self._correction.signal(scores[rows].to(device), part.to(device))
            for rows, part in self._groups
        )
        return [-float(signal.loss) for signal in signals]

    def value(self, measured: list[float]) -> float:
        """The log-likelihood per label."""
        return sum(measured) / self._labels

    def doubt(self, measured: list[float], other: list[float]) -> float:
        """The standard error of the difference per label, over groups."""
        return Lead.of(np.subtract(measured, other), self._labels).error


class OnHeldOutClicks:
    """How high the clicked documents of held-out sessions stand.

        Σ_i w_i Σ c_i / log2(1 + rank_i)  /  Σ_i w_i Σ c_i

    over positions i and all clicks c_i there, with the inverse propensity weights w believed now.
    What is measured are the inner sums, one per displayed position. Documents of equal score share
    the discounts of their ranks: in the order displayed, a ranker that tells nothing would look as
    good as the one that made the lists. `labels` stand in the place of the mean clicks of each
    list, where a correction has made some.
    """

    def __init__(
        self,
        features: NDArray[np.float32],
        log: ClickLog,
        believed: Callable[[], Propensity | None],
        max_weight: float = np.inf,
        labels: NDArray[np.floating] | None = None,
    ) -> None:
        self._lists, self._features = log.lists, features
        self._clicks = log.clicks_per_list.astype(np.float64)
        if labels is not None:
            self._clicks = log.sessions_per_list[:, None].astype(np.float64) * labels
        self._believed = believed
        self._max_weight = max_weight
        what = "clicks" if labels is None else "labels"
        self.name = (
            f"mean discount of the {what} of {len(np.unique(self._lists.queries))} held-out "
            "queries, with the method's own weights"
        )

    def measuring(self, ranker: Ranker) -> Measure:
        """Discounted clicks by the position at which they were made."""
        scores = ranker.follow_lists(self._features, self._lists)
        return lambda: self._of(scores())

    def _of(self, scores: NDArray[np.float32]) -> list[float]:
        discounts = 1 / np.log2(np.arange(self._lists.depth) + 2.0)
        return (self._clicks * by_rank(scores, self._lists.mask, discounts)).sum(axis=0).tolist()

    def value(self, measured: list[float]) -> float:
        """The weighted mean under the propensity believed now."""
        propensity = self._believed()
        weights = np.ones(len(measured))
        if propensity is not None:
            weights = np.minimum(propensity.weights[: len(measured)], self._max_weight)
        # Corrected labels of few sessions may add up to less than nothing.
        total = abs(weights @ self._clicks.sum(axis=0))
        return float(weights @ np.asarray(measured) / total) if total else 0.0

    def doubt(self, measured: list[float], other: list[float]) -> float:
        """None is known."""
        return 0.0
