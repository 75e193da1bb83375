"""`dualrank index`, `dualrank search` and `dualrank features`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.options import imports
from dualrank.cli.outputs import NewFile
from dualrank.cli.terminal import Json, Seed, answer, one_bar
from dualrank.errors import SettingsError
from dualrank.storage import require_suffix

if TYPE_CHECKING:
    from dualrank.pages.documents import Unreadable
    from dualrank.pages.index import PageIndex
    from dualrank.pages.tokens import Tokeniser

Pages = Annotated[
    Path, typer.Argument(help="A folder of HTML, or WARC, JSON lines or Parquet with pages.")
]
Jobs = Annotated[int, typer.Option(help="Processes; 0: one per core.", min=0)]


@imports("dualrank.pages.tokens:Tokeniser")
def index(
    pages: Pages,
    out: Annotated[Path, typer.Option("--out", help="The index: a new folder, or an index.")],
    *,
    tokeniser: Tokeniser,
    jobs: Jobs = 0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Put web pages into an index on disk, for finding the best of them by BM25.

    Pages that the index has already, by their doc_id, are replaced; the others stay. A page that
    cannot be read is counted and named, and the rest goes on.

    Example: dualrank index crawl/ --out index/

    Example: dualrank index pages.jsonl.zst --out index/ --stemmer english --stop-words
    """
    from dualrank.pages.candidates import warn_of
    from dualrank.pages.index import PageIndex
    from dualrank.pages.sources import find_pages

    source = find_pages(pages)
    made = PageIndex.open_or_create(out, tokeniser)
    with one_bar(f"indexing {pages.name}") as report:
        result = made.add(source, jobs=jobs, progress=report)
    warn_of("pages that cannot be read", [f"{e.place} ({e.reason})" for e in result.unreadable])
    warn_of("pages that come again under a doc_id, of which the first counts", result.repeated)
    summary = {"index": str(out), "pages": result.pages, "in_index": result.in_index}
    answer(
        as_json,
        summary | _left_out(result.unreadable, result.repeated),
        f"{out}: {result.pages} pages added or replaced, {result.in_index} in all",
    )


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="An index.")],
    words: Annotated[str | None, typer.Argument(help="What to look for.")] = None,
    k: Annotated[int, typer.Option("-k", "--top", help="How many pages at most.", min=1)] = 10,
    field: Annotated[str, typer.Option(help="url, title, content or whole.")] = "whole",
    queries: Annotated[
        Path | None, typer.Option(help="Many queries: a table with query_id and query.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The lists of --queries (.parquet), as for judging."),
        NewFile("lists of pages"),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find the best pages by BM25.

    With --queries and --out, write query_id, doc_id, rank and score of the best of every query:
    lists for judging, and for `dualrank features --candidates`.

    Example: dualrank search index/ "unbiased learning to rank"

    Example: dualrank search index/ --queries queries.tsv -k 100 --out lists.parquet
    """
    from dualrank.pages.index import PageIndex
    from dualrank.report import Row, Table

    if (words is None) == (queries is None) or (queries is None) != (out is None):
        raise SettingsError("give either words to look for, or --queries FILE with --out LISTS")
    opened = PageIndex.open(folder)
    if queries is not None and out is not None:
        _search_many(opened, queries, out, k, field, as_json)
        return
    hits = opened.search(words or "", k, field=field)
    columns = ("doc_id", "title", "url")
    rows = tuple(Row(f"{hit.score:.2f}", (hit.doc_id, hit.title, hit.url)) for hit in hits)
    table = Table(columns, rows, corner="score", words=columns)
    nothing = f"no page of {folder} has any of these words"
    answer(as_json, [vars(hit) for hit in hits], table if hits else nothing)


def _search_many(
    opened: PageIndex, queries: Path, out: Path, k: int, field: str, as_json: bool
) -> None:
    from dualrank.pages.candidates import warn_of
    from dualrank.pages.tables import read_queries
    from dualrank.storage import write_table

    require_suffix(out, "the table", ".parquet")
    asked = read_queries(queries)
    with one_bar("searching") as report:
        lists, empty = opened.search_all(asked, k, field=field, progress=report)
    warn_of("queries without any page", empty)
    write_table(out, lists, "lists of pages")
    summary = {"lists": str(out), "queries": len(asked), "pairs": lists.num_rows}
    answer(
        as_json,
        summary | {"without_pages": empty},
        f"{out}: {lists.num_rows} pages for {len(asked) - len(empty)} queries",
    )


@imports("dualrank.pages.tokens:Tokeniser")
def features(
    pages: Pages,
    queries: Annotated[Path, typer.Argument(help="A table with query_id and query.")],
    out: Annotated[
        Path,
        typer.Option("--out", help="The features to write (.parquet)."),
        NewFile("text features"),
    ],
    candidates: Annotated[
        str,
        typer.Option(
            help="A table with query_id and doc_id (lists, a click log, judgments), or how many "
            "of the best pages by BM25."
        ),
    ] = "100",
    *,
    tokeniser: Tokeniser,
    jobs: Jobs = 0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write the paper's 33 text features of queries and web pages.

    TF, IDF, TF·IDF, BM25, three language models and the length of url, title, content and whole
    document, and the slashes in the url; one row per query_id and doc_id, with the grade where the
    candidates are judged. Pages are read once, whatever their number, and are not kept.

    Example: dualrank features crawl/ queries.tsv --candidates 100 --out features.parquet

    Example: dualrank features pages.parquet queries.tsv --candidates clicks.parquet --out f.parquet
    """
    from dualrank.pages.candidates import extract
    from dualrank.pages.sources import find_pages
    from dualrank.pages.tables import Pairs, read_pairs, read_queries

    require_suffix(out, "the table", ".parquet")
    source, asked = find_pages(pages), read_queries(queries)
    wanted: Pairs | int = int(candidates) if candidates.isdecimal() else read_pairs(candidates)
    if wanted == 0:
        raise SettingsError("--candidates is at least 1 page, or a file")
    with one_bar(f"reading {pages.name}") as report:
        found = extract(source, asked, wanted, tokeniser, jobs=jobs, progress=report)
    counts, pairs = found.pages, found.candidates
    found.warn()
    with one_bar("features") as report:
        found.write(out, report)
    answer(
        as_json,
        {"features": str(out), "pages": counts.pages, "pairs": len(pairs.queries)}
        | _left_out(counts.unreadable, counts.repeated)
        | {"queries_without_pages": pairs.without, "unknown_candidates": len(pairs.unknown)},
        f"{out}: {len(pairs.queries)} pairs of {len(asked) - len(pairs.without)} queries, "
        f"statistics over {counts.pages} pages",
    )


def _left_out(unreadable: Sequence[Unreadable], repeated: Sequence[str]) -> dict[str, Any]:
    named = [{"page": each.place, "reason": each.reason} for each in unreadable]
    return {"unreadable": named, "repeated": list(repeated)}
