"""Documents that were scored in any order, query by query and best first.

DuckDB sorts them, in a given memory and beyond it on disk. Names of queries are not sorted: every
run of rows of one query is numbered by its first row, and only where a query comes again are the
numbers of its runs brought together.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.data.log.duckdb_engine import DuckDBEngine

MEMORY = "400MB"
ROWS_AT_ONCE = 1 << 17

_PLACES = """
    SELECT run, query_id, first FROM runs
    JOIN (SELECT query_id, min(run) AS first FROM runs GROUP BY query_id) USING (query_id)
"""
_RANKED = """
    SELECT query_id, doc_id, score, first FROM scored JOIN places USING (run)
    ORDER BY first, score DESC, row
"""


class ScoreOrder:
    """Takes documents with their scores, in any order, and gives them back in that of a run.

    Queries come in the order of their first row, documents of equal score in that of their rows.
    """

    def __init__(self, where: str, memory: str = MEMORY) -> None:
        self._engine = DuckDBEngine(memory, what="ranking", called=where)
        self._rows = 0
        self._last: tuple[str | None, int] = (None, 0)

    def __enter__(self) -> ScoreOrder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._engine.__exit__(kind, error, traceback)

    def add(self, queries: pa.Array, documents: pa.Array, scores: NDArray[np.floating]) -> None:
        """Some documents, with the names of their queries and their scores."""
        count = len(scores)
        if count == 0:
            return
        begins = np.ones(count, dtype=bool)
        begins[1:] = pc.not_equal(queries[1:], queries[:-1]).to_numpy(zero_copy_only=False)
        before, run = self._last
        begins[0] = queries[0].as_py() != before
        rows = np.arange(self._rows, self._rows + count)
        runs = np.maximum.accumulate(np.where(begins, rows, run))
        new = np.flatnonzero(begins)
        scored = {"run": runs, "row": rows, "doc_id": documents, "score": scores}
        self._engine.append("scored", pa.table(scored))
        if len(new):
            self._engine.append("runs", pa.table({"run": rows[new], "query_id": queries.take(new)}))
        self._rows += count
        self._last = (queries[count - 1].as_py(), int(runs[-1]))

    def ranked(self) -> Iterator[pa.Table]:
        """`query_id`, `doc_id`, `score` and `rank`, all documents of a query in one table."""
        self._engine.keep("places", _PLACES)
        left: pa.Table | None = None
        for batch in self._engine.batches(_RANKED, ROWS_AT_ONCE):
            found = pa.Table.from_batches([batch])
            whole = found if left is None else pa.concat_tables([left, found])
            first = whole["first"].to_numpy()
            begin = int(np.searchsorted(first, first[-1]))
            left = whole.slice(begin)
            if begin:
                yield _with_ranks(whole.slice(0, begin))
        if left is not None:
            yield _with_ranks(left)


def _with_ranks(rows: pa.Table) -> pa.Table:
    first = rows["first"].to_numpy()
    place: NDArray[Any] = np.arange(len(first))
    begins = np.append(True, first[1:] != first[:-1])
    ranks = place - np.maximum.accumulate(np.where(begins, place, 0)) + 1
    return pa.table(
        {
            "query_id": rows["query_id"].cast(pa.string()),
            "doc_id": rows["doc_id"].cast(pa.string()),
            "score": rows["score"],
            "rank": ranks,
        }
    )
