"""The scikit-learn style estimator, for people who hold arrays or a data frame."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.errors import DataError
from dualrank.evaluation.click_check import ClickCheck
from dualrank.learning.feature_matrix import FeatureMatrix, RowsError, take_apart
from dualrank.learning.fit import fit
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.rankers.ranker import RankerSettings

try:  # What scikit-learn's own tools ask of an estimator; fitting and predicting do without.
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError as _NotFitted
except ImportError:
    BaseEstimator = object

    class _NotFitted(ValueError, AttributeError):  # type: ignore[no-redef]  # noqa: N818
        pass


class NotFittedError(DataError, _NotFitted):
    """A `ClickRanker` was asked before it was fitted; scikit-learn's error of this name, too."""


class ClickRanker(BaseEstimator):
    """Learns a ranker from clicks on displayed documents.

    Each row of `X` is a document that was displayed; rows with the same `qid` are one displayed
    list, `position` (from 1) tells where the document stood, and `clicks` whether it was clicked.
    `X` is a matrix or a data frame (pandas, polars, Arrow). Of a frame, `qid` and `position` may
    also be the names of columns, which are then no features.

    After `fit`, `model_` is the trained model and `examination_` the propensity curve, if the
    method has one. `n_features_in_` is the number of features, and `feature_names_in_` their names,
    where `X` was a frame: `predict` refuses others, or another order, as scikit-learn does.

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
    - `half_life` is after how many new sessions an older one counts half in `partial_fit`; None
      lets nothing fade.
    - `seed` decides everything random.

    `GridSearchCV` compares settings by `score`, on queries that were held out. Where `qid` and
    `position` are columns, nothing else is needed:

        search = GridSearchCV(ClickRanker(), {"method": ["dla", "naive"]}, cv=GroupKFold(5))
        search.fit(frame, clicks, groups=frame["qid"], qid="qid", position="position")

    As arrays they reach `score` by scikit-learn's metadata routing, which is switched on by
    `sklearn.set_config(enable_metadata_routing=True)`.

    >>> import numpy as np
    >>> import dualrank as dr
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(10_000, 3))  # 1,000 lists of ten
    >>> qid, position = np.repeat(np.arange(1000), 10), np.tile(np.arange(1, 11), 1000)
    >>> seen = random.random(10_000) < 1 / position
    >>> clicks = seen & (random.random(10_000) < 1 / (1 + np.exp(-X[:, 0])))
    >>> ranker = dr.ClickRanker(hidden=(8,), steps=300).fit(X, clicks, qid=qid, position=position)
    >>> ranker.predict(np.array([[2.0, 0, 0], [-2.0, 0, 0]])).argmax().item()
    0
    """

    # Which arguments are routed to whom: what else scikit-learn would ask of every user.
    __metadata_request__fit: ClassVar = {"qid": True, "position": True}
    __metadata_request__partial_fit: ClassVar = {"qid": True, "position": True}
    __metadata_request__score: ClassVar = {"qid": True, "position": True}

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
        half_life: float | None = None,
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
        self.half_life = half_life
        self.seed = seed

    def fit(
        self,
        X: ArrayLike | Any,
        clicks: ArrayLike,
        *,
        qid: ArrayLike | str,
        position: ArrayLike | str,
    ) -> ClickRanker:
        """Train on displayed lists; rows may come in any order."""
        given, columns = take_apart(X, {"qid": qid, "position": position})
        dataset, log = _lists_from_rows(given, clicks, columns["qid"], columns["position"])
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
        if given.names is not None:
            self.feature_names_in_ = np.array(given.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        # Columns of X that are no features, so that frames with them are understood later.
        named = {"qid": qid, "position": position}
        self.columns_ = {name: of for name, of in named.items() if isinstance(of, str)}
        learned = self.model_.propensity
        self.examination_ = None if learned is None else learned.examination
        return self

    def partial_fit(
        self,
        X: ArrayLike | Any,
        clicks: ArrayLike,
        *,
        qid: ArrayLike | str,
        position: ArrayLike | str,
    ) -> ClickRanker:
        """Go on from new lists, with a memory of those before (`Model.update`).

        The first call fits. `steps` are those of `fit`: an update has as many as the new lists ask
        for.
        """
        if getattr(self, "model_", None) is None:
            ClickRanker.fit(self, X, clicks, qid=qid, position=position)
            dataset, log = self._lists(X, clicks, qid, position)
            self.model_ = self.model_.remember(log, dataset, seed=self.seed)
            return self
        dataset, log = self._lists(X, clicks, qid, position)
        self.model_ = self.model_.update(
            log, dataset, half_life=self.half_life, validation=0.0, seed=self.seed
        )
        learned = self.model_.propensity
        self.examination_ = None if learned is None else learned.examination
        return self

    def _lists(
        self, X: Any, clicks: ArrayLike, qid: ArrayLike | str, position: ArrayLike | str
    ) -> tuple[Dataset, ClickLog]:
        """New lists, of the features that were learned from."""
        given, columns = take_apart(X, {"qid": qid, "position": position})
        given.check(self.n_features_in_, getattr(self, "feature_names_in_", None))
        return _lists_from_rows(given, clicks, columns["qid"], columns["position"])

    def predict(self, X: ArrayLike | Any) -> NDArray[np.float32]:
        """One score per row; higher is better."""
        self._require_fitted()
        given = FeatureMatrix.of(X, list(self.columns_.values()))
        given.check(self.n_features_in_, getattr(self, "feature_names_in_", None))
        return self.model_.predict(given.values)

    def score(
        self,
        X: ArrayLike | Any,
        clicks: ArrayLike,
        *,
        qid: ArrayLike | str | None = None,
        position: ArrayLike | str | None = None,
    ) -> float:
        """How much better the scores explain these clicks than position alone does.

        It is the gain in log-likelihood per click, position accounted for (see `click_check`): 0
        says that nothing was learned, and methods can be compared by it, since a ranker gains
        nothing by having learned the position. Lists must be of queries that were not learned from.
        """
        self._require_fitted()
        named = {"qid": qid, "position": position}
        wanted = {name: self.columns_.get(name) if of is None else of for name, of in named.items()}
        missing = [name for name, of in wanted.items() if of is None]
        if missing:
            raise RowsError(
                f"score needs {' and '.join(missing)}: give them as arrays, or as columns of X in "
                "fit; scikit-learn's tools hand arrays on after "
                "sklearn.set_config(enable_metadata_routing=True)"
            )
        given, columns = take_apart(X, wanted)
        given.check(self.n_features_in_, getattr(self, "feature_names_in_", None))
        dataset, log = _lists_from_rows(given, clicks, columns["qid"], columns["position"])
        scores = self.model_.predict(dataset)
        return ClickCheck(log).lead(scores, over=np.zeros(len(scores))).gain

    def _require_fitted(self) -> None:
        if getattr(self, "model_", None) is None:
            raise NotFittedError("this ClickRanker is not fitted yet; call fit first")


def _lists_from_rows(
    given: FeatureMatrix, clicks: ArrayLike, qid: ArrayLike, position: ArrayLike
) -> tuple[Dataset, ClickLog]:
    matrix, queries = given.values, np.asarray(qid)
    positions, clicked = np.asarray(position), np.asarray(clicks)
    for name, values in (("clicks", clicked), ("qid", queries), ("position", positions)):
        if values.shape != (len(matrix),):
            raise RowsError(f"{name} has shape {values.shape}, but X has {len(matrix)} rows")
    if not np.issubdtype(positions.dtype, np.integer):
        raise RowsError("position holds numbers that are not whole; positions are 1, 2, 3 …")
    if not np.isin(clicked, (0, 1)).all():
        raise RowsError("clicks holds values other than 0 and 1")
    bad = np.argwhere(np.isinf(matrix))
    if len(bad):
        raise RowsError(f"row {bad[0, 0]} of features holds an infinity")
    order = np.lexsort((positions, queries))
    dataset = Dataset.from_arrays(matrix[order], queries[order], feature_names=given.names)
    starts = np.repeat(dataset.offsets[:-1], dataset.lengths)
    expected = np.arange(len(order)) - starts + 1
    wrong = np.flatnonzero(positions[order] != expected)
    if len(wrong):
        row = order[wrong[0]]
        raise RowsError(
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
