"""Scores of documents that come some at a time, with the checks that all of them take together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.data.feature_batches import FeatureBatch
from dualrank.data.feature_rows import infinite_feature
from dualrank.errors import DataError
from dualrank.learning.model import Model, missing_values
from dualrank.learning.score_checks import score_not_finite


class BatchScoring:
    """A model that scores batches of features, called `where`.

    Of what is wrong the first is kept and all are counted, so that `require_good` says at the end
    what `read_features` and `Model.predict` say of all documents.
    """

    def __init__(self, model: Model, where: str, names: tuple[str, ...] | None) -> None:
        self._model, self._where, self._names = model, where, names
        self._missing = np.zeros(model.scaler.input_count, dtype=np.int64)
        self._infinite = self._not_finite = self.documents = 0
        self._first_infinite: tuple[str, str, str, np.float32] | None = None
        self._first_not_finite: tuple[str, np.float32, int] | None = None

    def scores(self, batch: FeatureBatch) -> NDArray[np.float32]:
        """One score per document; once something was wrong, no more than zeros."""
        features, model = batch.features, self._model
        self.documents += len(features)
        if not np.isfinite(features).all():
            self._note_infinite(batch)
            if not model.ranker.takes_missing:
                self._missing += np.isnan(features).sum(axis=0)
        if self._infinite or self._missing.any():
            return np.zeros(len(features), np.float32)
        scaled = model.scaler.transform(features)
        scores = model.ranker.predict(scaled, None)
        finite = np.isfinite(scores)
        if not finite.all():
            row = int(np.argmin(finite))
            if self._first_not_finite is None:
                largest = np.argmax(np.nan_to_num(np.abs(scaled[row])))
                column = int(model.scaler.kept[largest])
                name = f"document {batch.documents[row]} of query {batch.queries[row]}"
                self._first_not_finite = (name, features[row, column], column)
            self._not_finite += int((~finite).sum())
        return scores

    def _note_infinite(self, batch: FeatureBatch) -> None:
        bad = np.flatnonzero(np.isinf(batch.features).any(axis=1))
        self._infinite += len(bad)
        if len(bad) and self._first_infinite is None:
            row = int(bad[0])
            column = int(np.flatnonzero(np.isinf(batch.features[row]))[0])
            feature = self._names[column] if self._names else f"feature {column + 1}"
            document, query = batch.documents[row].as_py(), batch.queries[row].as_py()
            value = batch.features[row, column]
            self._first_infinite = (feature, query, document, value)

    def require_good(self) -> None:
        """Refuse documents that cannot be ranked."""
        if self._first_infinite is not None:
            feature, query, document, value = self._first_infinite
            named = f"document {document!r} of query {query!r}"
            raise DataError(infinite_feature(self._where, feature, named, value, self._infinite))
        if self._missing.any():
            raise DataError(
                missing_values(
                    self._missing, self.documents, self._model.feature_names, self._model.kind
                )
            )
        if self._first_not_finite is not None:
            name, value, column = self._first_not_finite
            raise DataError(score_not_finite(self._model, name, value, column, self._not_finite))
