"""What was displayed: ranked lists of a fixed depth over the documents of a data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.ranking import rank_segments
from dualrank.errors import DataError

PADDING = -1


@dataclass(frozen=True, eq=False)
class RankedLists:
    """One displayed list per row: `documents[l, i]` is the data set's row shown at rank `i + 1`.

    Lists shorter than the depth end in `PADDING`, which is never clicked, never in a softmax
    and never in a metric. `PADDING` above a document is a gap: what stood there, if anything did,
    was not logged.

    >>> import numpy as np
    >>> import dualrank as dr
    >>> documents = np.array([[4, 2, 7], [1, 0, -1]], np.int32)
    >>> lists = dr.RankedLists(documents, queries=np.array([0, 1], np.int32))
    >>> lists.depth
    3
    >>> lists.mask.astype(int)
    array([[1, 1, 1],
           [1, 1, 0]])
    """

    documents: NDArray[np.int32]
    queries: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def depth(self) -> int:
        """The longest list that can be displayed."""
        return self.documents.shape[1]

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True where a document was displayed."""
        return self.documents != PADDING

    @property
    def have_gaps(self) -> NDArray[np.bool_]:
        """Of each list, whether it has a gap, so that what stood above a document is not known.

        >>> RankedLists(np.array([[4, 2, -1], [-1, 2, -1]]), np.zeros(2, int)).have_gaps
        array([False,  True])
        """
        mask = self.mask
        begins_below: NDArray[np.bool_] = ~mask[:, :-1] & mask[:, 1:]
        return np.asarray(begins_below.any(axis=1))

    def gather(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Per-document values (grades, scores) laid out like the lists, 0 at padding."""
        return np.where(self.mask, values[self.documents], np.float32(0))


def require_no_gaps(lists: RankedLists, who: str, instead: str) -> None:
    """Refuse lists with gaps for what needs to know all that stood above a document."""
    gaps = int(lists.have_gaps.sum())
    if gaps:
        raise DataError(
            f"{who} follows users down the list, and {gaps} of {len(lists)} lists have gaps: what "
            f"was clicked there is not known; {instead}"
        )


def rank_documents(dataset: Dataset, scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """All documents, query by query, best first; ties keep the order of the input, nan is last."""
    # Plain copies: a memory-mapped or read-only array would compile the kernel once more.
    values = np.array(scores, dtype=np.float64)
    if values.shape != (dataset.document_count,):
        raise DataError(
            f"scores has shape {values.shape}, but there are {dataset.document_count} documents"
        )
    values[np.isnan(values)] = -np.inf
    return rank_segments(values, np.array(dataset.offsets))


def top_lists(dataset: Dataset, scores: NDArray[np.floating], depth: int = 10) -> RankedLists:
    """The top of each query's ranking by `scores`, as one displayed list per query.

    >>> data = Dataset.from_arrays([[0.0]] * 3, qid=[1, 1, 2])
    >>> top_lists(data, np.array([0.1, 0.9, 0.5]), depth=2).documents
    array([[ 1,  0],
           [ 2, -1]], dtype=int32)
    """
    order = rank_documents(dataset, scores)
    ranks = np.arange(len(order)) - np.repeat(dataset.offsets[:-1], dataset.lengths)
    shown = ranks < depth
    documents = np.full((len(dataset), depth), PADDING, dtype=np.int32)
    documents[dataset.query_of_document[shown], ranks[shown]] = order[shown]
    return RankedLists(documents, np.arange(len(dataset), dtype=np.int32))
