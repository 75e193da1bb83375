"""Features that a service holds, so that requests need only name documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.sentences import document_of, shortened


class FeatureTable:
    """Finds the features of a query's documents by their ids."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._ids = dataset.ids_of_documents()
        self._queries = {str(name): i for i, name in enumerate(dataset.query_ids)}
        self._rows: dict[str, dict[str, int]] = {}

    def features(self, query_id: str, doc_ids: Sequence[str]) -> NDArray[np.float32]:
        """A row for each document; a DataError that names what is not there."""
        rows = self._rows.get(query_id)
        if rows is None:
            rows = self._rows[query_id] = self._rows_of(query_id)
        try:
            return self.dataset.features[[rows[name] for name in doc_ids]]
        except KeyError as error:
            raise DataError(
                f"{document_of(query_id, error.args[0])} is not in the table of features; send its "
                "features with it"
            ) from None

    def _rows_of(self, query_id: str) -> dict[str, int]:
        query = self._queries.get(query_id)
        if query is None:
            raise DataError(
                f"query {shortened(query_id)} is not in the table of features; send the features "
                "of its documents with them"
            )
        start, end = (int(each) for each in self.dataset.offsets[query : query + 2])
        return dict(zip(self._ids[start:end].tolist(), range(start, end), strict=True))
