"""The best pages of many queries: lists for judging, and for features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from dualrank.pages.index import PageIndex
from dualrank.pages.tables import Queries


def search_lists(
    index: PageIndex,
    queries: Queries,
    k: int = 10,
    *,
    field: str = "whole",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[pa.Table, list[str]]:
    """A table of query_id, doc_id, rank and score, and the queries that no page was found for."""
    rows: list[dict[str, Any]] = []
    empty = []
    for done, (query, text) in enumerate(zip(queries.query_ids, queries.texts, strict=True), 1):
        hits = index.search(text, k, field=field)
        if not hits:
            empty.append(query)
        for rank, hit in enumerate(hits, 1):
            rows.append({"query_id": query, "doc_id": hit.doc_id, "rank": rank, "score": hit.score})
        if progress:
            progress(done, len(queries))
    kinds = {"query_id": pa.string(), "doc_id": pa.string(), "rank": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema({**kinds, "score": pa.float64()})), empty
