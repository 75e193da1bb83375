"""The names behind the numbers: which query and which document each index stands for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Queries, and the documents that are known for each of them.

    A document that is known for two queries stands here twice: an index is one query–document
    pair. `query_of_document` points into `query_ids`. Ids are texts of numpy or of Python.
    """

    query_ids: NDArray[np.str_ | np.object_]
    doc_ids: NDArray[np.str_ | np.object_]
    query_of_document: NDArray[np.int64]

    def pairs(self) -> list[tuple[str, str]]:
        """The ids of query and document of every index."""
        queries = self.query_ids[self.query_of_document].tolist()
        return list(zip(queries, self.doc_ids.tolist(), strict=True))

    def pairs_twice(self) -> set[tuple[str, str]]:
        """The pairs that have more than one index."""
        return {pair for pair, times in Counter(self.pairs()).items() if times > 1}
