"""How good rankings are: metrics of scores against the grades of a data set.

What is measured is always the same, and stated here once. A ranking holds *all* documents of a
query by descending score; ties keep the order of the input. A document is relevant from grade 1.
nDCG has gain 2^y − 1, discount log2(rank + 1) and the ideal over all documents of the query;
ERR has (2^y − 1) / 2^ymax with the ymax of the data set; the formulas stand in `measures`.

Queries without a relevant document, that is with no grade above 0, are handled alike in every
metric, by `no_relevant`:

- `"zero"` (the default): they score 0, as in pytrec_eval. No ranking does better on them, so
  they lower every mean by the same factor and never change an order of rankers.
- `"skip"`: their value is nan and means leave them out.
- `"one"`: they score 1 in every metric, as nDCG and MAP do in LightGBM.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.inputs import judged_from, scores_from
from dualrank.data.ranking import rank_segments
from dualrank.errors import DataError, SettingsError
from dualrank.evaluation import formulas
from dualrank.evaluation.metric import PAPER_METRICS, Metric, parse_metrics
from dualrank.sentences import counted

NoRelevant = Literal["zero", "skip", "one"]

# Sums of gains stay finite in float64 below this.
_LARGEST_GRADE = 1000.0


class Evaluator:
    """Metrics of many rankings of one data set, with what they share computed once.

    >>> data = Dataset.from_arrays([[0.0]] * 3, qid=[1, 1, 2], grades=[0, 2, 1])
    >>> evaluator = Evaluator(data, ["mrr", "precision@1"])
    >>> evaluator([0.9, 0.1, 0.5])
    {'mrr': 0.75, 'precision@1': 0.5}
    >>> evaluator.per_query([0.9, 0.1, 0.5])["mrr"]
    array([0.5, 1. ])
    """

    def __init__(
        self,
        dataset: Dataset,
        metrics: str | Metric | Iterable[str | Metric] = PAPER_METRICS,
        *,
        no_relevant: NoRelevant = "zero",
    ) -> None:
        if no_relevant not in get_args(NoRelevant):
            raise SettingsError(
                f"no_relevant is {no_relevant!r}; it must be 'zero', 'skip' or 'one'"
            )
        self.metrics = parse_metrics(metrics)
        self.no_relevant = no_relevant
        # Plain copies: a memory-mapped or read-only array would compile every kernel once more.
        self._offsets = np.array(dataset.offsets)
        self._query_ids = dataset.query_ids
        self._prepare(np.array(dataset.require_grades()), dataset.max_grade)

    def _prepare(self, grades: NDArray[np.float32], max_grade: float) -> None:
        if max_grade > _LARGEST_GRADE:
            raise DataError(
                f"grades go up to {max_grade:g}; metrics with gain 2^y − 1 allow "
                f"at most {_LARGEST_GRADE:g}"
            )
        offsets = self._offsets
        self._longest = int(np.diff(offsets).max())
        self._discounts = 1.0 / np.log2(np.arange(self._longest) + 2.0)
        self._relevant = grades >= 1
        self._gains = np.exp2(grades.astype(np.float64)) - 1.0
        self._satisfaction = self._gains / 2.0**max_grade

        graded = np.concatenate([[0], np.cumsum(self._gains > 0)])
        self._empty = graded[offsets[1:]] == graded[offsets[:-1]]
        if self.no_relevant == "skip" and self._empty.all():
            raise DataError(
                "no query has a relevant document, so no_relevant='skip' leaves none to evaluate"
            )
        self._ideals: dict[Metric, NDArray[np.float64]] = {}
        if any(metric.name == "ndcg" for metric in self.metrics):
            best = self._gains[rank_segments(self._gains, offsets)]
            for metric in (m for m in self.metrics if m.name == "ndcg"):
                ideal = formulas.discounted_cumulative_gain(
                    best, offsets, self._cutoff(metric), self._discounts
                )
                self._ideals[metric] = np.where(self._empty, 1.0, ideal)

    def account(self) -> list[str]:
        """Queries on which all rankings are alike, in words: they tell none from another."""
        alone = np.diff(self._offsets) == 1
        empty, single = int(self._empty.sum()), int((alone & ~self._empty).sum())
        counts = {"zero": "counted as 0", "one": "counted as 1", "skip": "left out"}
        found = []
        if empty:
            what = counted(empty, "queries")
            found.append(f"{what} without a relevant document {counts[self.no_relevant]}")
        if single:
            found.append(f"{counted(single, 'queries')} with one document, which is always first")
        return found

    def __call__(self, scores: ArrayLike) -> dict[str, float]:
        """The mean of each metric over the queries, by its key."""
        counted = ~self._empty if self.no_relevant == "skip" else slice(None)
        return {key: float(v[counted].mean()) for key, v in self.per_query(scores).items()}

    def per_query(self, scores: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """The values of each metric, one per query in the order of the data set, by its key."""
        order = rank_segments(self._check(scores), self._offsets)
        relevant = self._relevant[order]
        gains = self._gains[order]
        satisfaction = self._satisfaction[order]
        results = {}
        for metric in self.metrics:
            where = self._offsets, self._cutoff(metric)
            match metric.name:
                case "ndcg":
                    dcg = formulas.discounted_cumulative_gain(gains, *where, self._discounts)
                    values = dcg / self._ideals[metric]
                case "dcg":
                    values = formulas.discounted_cumulative_gain(gains, *where, self._discounts)
                case "err":
                    values = formulas.expected_reciprocal_rank(satisfaction, *where)
                case "map":
                    values = formulas.average_precision(relevant, *where)
                case "mrr":
                    values = formulas.reciprocal_rank(relevant, *where)
                case _:
                    values = formulas.precision(relevant, *where)
            if self.no_relevant != "zero":
                values[self._empty] = 1.0 if self.no_relevant == "one" else np.nan
            results[str(metric)] = values
        return results

    def _cutoff(self, metric: Metric) -> int:
        return self._longest if metric.cutoff is None else metric.cutoff

    def _check(self, scores: ArrayLike) -> NDArray[np.float64]:
        try:
            values = np.array(scores, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise DataError("scores must be one number per document") from None
        if values.shape != self._gains.shape:
            raise DataError(
                f"scores has shape {values.shape}, but there are {len(self._gains)} documents"
            )
        bad = np.flatnonzero(np.isnan(values))
        if len(bad):
            query = self._query_ids[np.searchsorted(self._offsets, bad[0], side="right") - 1]
            raise DataError(f"row {bad[0]} of scores (query {str(query)!r}) is nan")
        return values


def evaluate(
    scores: ArrayLike | Any,
    dataset: Dataset | Any,
    metrics: str | Metric | Iterable[str | Metric] = PAPER_METRICS,
    *,
    no_relevant: NoRelevant = "zero",
) -> dict[str, float]:
    """The mean of each metric over the queries of a data set, for one score per document.

    The data set may be a data frame with `query_id` and `grade`: there is one score for each of its
    rows. Scores may be one too, with `query_id`, `doc_id` and `score`; documents that it leaves out
    come last. Who evaluates one data set many times keeps an `Evaluator` instead.

    >>> data = Dataset.from_arrays([[0.0]] * 3, qid=[1, 1, 2], grades=[0, 2, 1])
    >>> evaluate([0.1, 0.9, 0.5], data, ["ndcg@10", "mrr"])
    {'ndcg@10': 1.0, 'mrr': 1.0}
    """
    judged, order = judged_from(dataset)
    evaluator = Evaluator(judged, metrics, no_relevant=no_relevant)
    return evaluator(scores_from(scores, judged, order))


def evaluate_per_query(
    scores: ArrayLike | Any,
    dataset: Dataset | Any,
    metrics: str | Metric | Iterable[str | Metric] = PAPER_METRICS,
    *,
    no_relevant: NoRelevant = "zero",
) -> dict[str, NDArray[np.float64]]:
    """The values of each metric, one per query; what `fisher_test` compares.

    >>> import numpy as np
    >>> import dualrank as dr
    >>> data = dr.Dataset.from_arrays(np.zeros((4, 1), np.float32), np.array([1, 1, 2, 2]),
    ...                               grades=np.array([1, 0, 0, 1]))
    >>> dr.evaluate_per_query([0.9, 0.1, 0.9, 0.1], data, "ndcg@10")["ndcg@10"].round(2)
    array([1.  , 0.63])
    """
    judged, order = judged_from(dataset)
    evaluator = Evaluator(judged, metrics, no_relevant=no_relevant)
    return evaluator.per_query(scores_from(scores, judged, order))
