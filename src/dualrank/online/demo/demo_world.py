"""The demo's small world: generated queries, and how good a list for one of them is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.generator import World, with_document_ids
from dualrank.data.lists import RankedLists, top_lists
from dualrank.storage import write_table

QUERIES = 1_500
FEATURES = 24
DEPTH = 10


@dataclass(frozen=True)
class DemoWorld:
    """Queries with documents of known relevance; the same seed gives the same one everywhere.

    Users know the relevance, the service knows the features, and neither knows the other's.
    """

    dataset: Dataset
    seed: int

    @classmethod
    def of(cls, seed: int, queries: int = QUERIES) -> DemoWorld:
        """The world of a seed."""
        return cls(with_document_ids(World(FEATURES, seed).generate(queries, seed)), seed)

    def write_features(self, path: Path) -> None:
        """Write what the service knows: features, and no grades."""
        data = self.dataset
        table = pa.table(
            {
                "query_id": np.repeat(data.query_ids, data.lengths),
                "doc_id": data.ids_of_documents(),
                "features": list(data.features),
            }
        )
        write_table(path, table, "features")

    def quality(self, lists: RankedLists) -> NDArray[np.float64]:
        """nDCG@10 of one displayed list of every query."""
        return self.quality_of(lists.documents, lists.queries)

    def quality_of(
        self, documents: NDArray[np.integer], queries: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """nDCG@10 of displayed lists: rows of documents, −1 where there is none."""
        gains = np.where(documents >= 0, self._gains[documents], 0.0)
        return gains @ self._discounts / self._ideal[queries]

    @cached_property
    def _gains(self) -> NDArray[np.float64]:
        return np.exp2(self.dataset.require_grades().astype(np.float64)) - 1

    @cached_property
    def _discounts(self) -> NDArray[np.float64]:
        return 1 / np.log2(np.arange(DEPTH) + 2)

    @cached_property
    def _ideal(self) -> NDArray[np.float64]:
        best = top_lists(self.dataset, self._gains, DEPTH)
        dcg = np.where(best.mask, self._gains[best.documents], 0.0) @ self._discounts
        return np.where(dcg > 0, dcg, 1.0)
