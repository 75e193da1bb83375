"""The scikit-learn style estimator, for people who hold arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.errors import DataError
from dualrank.learning.fit import fit
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.rankers.ranker import RankerSettings

try:  # What scikit-learn's own tools ask of an estimator; fitting and predicting do without.
    from sklearn.base import BaseEstimator
except ImportError:
    BaseEstimator = object


class ClickRanker(BaseEstimator):
    """Learns a ranker from clicks on displayed documents.

    Each row of `X` is a document that was displayed; rows with the same `qid` are one displayed
    list, `position` (from 1) tells where the document stood, and `clicks` whether it was clicked.
    After `fit`, `model_` is the trained model and `examination_` the propensity curve, if the
    method has one.

    - `method` is the correction for position, such as `dla`, `naive` or `auto` (see `Plan`).
    - `hidden` are the sizes of the hidden layers of a network, where no `ranker` is given.
    - `ranker` are the settings of another one, such as `Trees(leaves=7)`, which learn from features
      that may be missing (nan); None is `DNN(hidden)`.
    - `steps` is how many the training has, `learning_rate` the ranker's rate; None is what suits
      ranker and method (a network with `dla`: 3,000 and 0.2).
    - `batch_size` is how many lists a step draws; trees take all of them.
    - `propensity_rate` is the rate at which `dla` and its like learn about position.
    - `examination` is the curve that `ipw` takes: how likely each position is looked at.
    - `validation` is the share of queries whose clicks are held out to keep the best ranker; 0
      keeps the last.
    - `scaling` of features is `standard`, `minmax`, `log` or `none`; trees have no need of it.
    - `seed` decides everything random.
    """

    def __init__(
        self,
        method: str = "dla",
        hidden: tuple[int, ...] = (256, 128),
        *,
        ranker: RankerSettings | None = None,
        steps: int | None = None,
        batch_size: int = 256,
        learning_rate: float | None = None,
        propensity_rate: float = 1.0,
        examination: ArrayLike | None = None,
        validation: float = 0.1,
        scaling: str = "standard",
        seed: int = 0,
    ) -> None:
        self.method = method
        self.hidden = hidden
        self.ranker = ranker
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.propensity_rate = propensity_rate
        self.examination = examination
        self.validation = validation
        self.scaling = scaling
        self.seed = seed

    def fit(
        self, X: ArrayLike, clicks: ArrayLike, *, qid: ArrayLike, position: ArrayLike
    ) -> ClickRanker:
        """Train on displayed lists; rows may come in any order."""
        dataset, log = _lists_from_rows(X, clicks, qid, position)
        self.model_ = fit(
            log,
            dataset,
            method=self.method,
            ranker=DNN(self.hidden) if self.ranker is None else self.ranker,
            propensity=None if self.examination is None else Propensity.of(self.examination),
            validation=self.validation,
            scaling=self.scaling,
            steps=self.steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            propensity_rate=self.propensity_rate,
            seed=self.seed,
        )
        self.n_features_in_ = dataset.feature_count
        learned = self.model_.propensity
        self.examination_ = None if learned is None else learned.examination
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float32]:
        """One score per row; higher is better."""
        model: Any = getattr(self, "model_", None)
        if model is None:
            raise DataError("this ClickRanker is not fitted yet; call fit first")
        return model.predict(np.asarray(X, dtype=np.float32))


def _lists_from_rows(
    X: ArrayLike, clicks: ArrayLike, qid: ArrayLike, position: ArrayLike
) -> tuple[Dataset, ClickLog]:
    matrix, queries = np.asarray(X, dtype=np.float32), np.asarray(qid)
    positions, clicked = np.asarray(position), np.asarray(clicks)
    for name, values in (("clicks", clicked), ("qid", queries), ("position", positions)):
        if values.shape != (len(matrix),):
            raise DataError(f"{name} has shape {values.shape}, but X has {len(matrix)} rows")
    if not np.issubdtype(positions.dtype, np.integer):
        raise DataError("position holds numbers that are not whole; positions are 1, 2, 3 …")
    if not np.isin(clicked, (0, 1)).all():
        raise DataError("clicks holds values other than 0 and 1")
    bad = np.argwhere(np.isinf(matrix))
    if len(bad):
        raise DataError(f"row {bad[0, 0]} of features holds an infinity")
    order = np.lexsort((positions, queries))
    dataset = Dataset.from_arrays(matrix[order], queries[order])
    starts = np.repeat(dataset.offsets[:-1], dataset.lengths)
    expected = np.arange(len(order)) - starts + 1
    wrong = np.flatnonzero(positions[order] != expected)
    if len(wrong):
        row = order[wrong[0]]
        raise DataError(
            f"row {row}: query {str(queries[row])!r} has position {positions[row]} where "
            f"{expected[wrong[0]]} was expected; positions are 1, 2, 3 … in every query"
        )
    shape = (len(dataset), int(dataset.lengths.max()))
    documents = np.full(shape, PADDING, dtype=np.int32)
    pattern = np.zeros(shape, dtype=bool)
    documents[dataset.query_of_document, expected - 1] = np.arange(len(order))
    pattern[dataset.query_of_document, expected - 1] = clicked[order].astype(bool)
    lists = RankedLists(documents, np.arange(len(dataset), dtype=np.int32))
    log = ClickLog.from_clicks(lists, np.arange(len(dataset)), pattern, catalogue=dataset.catalogue)
    return dataset, log
