"""The generated web as files of the kinds that a user has: pages, queries, click log, judgments."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from dualrank.pages import WebSize, generate_web
from dualrank.reproduce.search_engine import Log, display, simulate_log, users_of
from dualrank.reproduce.text_collection import split_web
from dualrank.storage import atomic_file, write_text


def write_web(
    folder: Path,
    *,
    log: Log | None = None,
    population: str = "mixed",
    size: WebSize | None = None,
    seed: int = 0,
) -> dict[str, int]:
    """Write `pages.jsonl`, `queries.tsv`, `clicks.parquet` and `judgments.qrels`; say how many.

    A fifth of the queries is judged, on the hundred best pages by BM25; nobody clicks on these.
    """
    users = users_of(population)
    web = generate_web(size, seed)
    data = display(split_web(web, seed), seed)
    clicks = simulate_log(data, users, log or Log(), seed)
    pages = "".join(json.dumps(row) + "\n" for row in web.pages.rows)
    asked = zip(web.queries.query_ids, web.queries.texts, strict=True)
    test = data.test
    judged = zip(test.pairs(), test.require_grades().tolist(), strict=True)
    write_text(folder / "pages.jsonl", pages)
    write_text(
        folder / "queries.tsv", "query_id\tquery\n" + "".join(f"{n}\t{text}\n" for n, text in asked)
    )
    with atomic_file(folder / "clicks.parquet") as file:
        pq.write_table(clicks.to_table(), file, compression="zstd")
    write_text(
        folder / "judgments.qrels",
        "".join(f"{query} 0 {document} {grade:g}\n" for (query, document), grade in judged),
    )
    return {
        "pages": len(web.pages.rows),
        "queries": len(web.queries),
        "sessions": clicks.sessions,
        "judgments": test.document_count,
    }
