"""`dualrank interleave build` and `read`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dualrank.cli.options import Without
from dualrank.cli.outputs import INTERLEAVING, NewFile
from dualrank.cli.terminal import (
    Json,
    Seed,
    answer,
    one_bar,
    typed_command,
)
from dualrank.data.log.log_options import LogOptions
from dualrank.sentences import counted

Arms = Annotated[
    str | None,
    typer.Option("--arms", help="Names separated by commas, in the order in which they stand."),
]


Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="The click log: Parquet, CSV or JSON lines; a file, folder or pattern.",
    ),
]


def build(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_A RUN_B [RUN_C …]",
            help="What each arm would show: TREC runs, or tables with query_id, doc_id and score.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The lists to write (.parquet)."), NewFile("interleavings")
    ],
    way: Annotated[
        str, typer.Option("--way", help="team-draft, or optimised (of two arms).")
    ] = "team-draft",
    depth: Annotated[int, typer.Option(help="How long the lists are.", min=1)] = 10,
    per_query: Annotated[
        int, typer.Option(help="How many team drafts there are of a query.", min=1)
    ] = 16,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries", help="Only these: a table with query_id, or text with one id in a line."
        ),
    ] = None,
    arms: Arms = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Interleave rankings: lists that show documents of several arms, and say whose they are.

    A service shows, for every session anew, one of the lists of its query, drawn with its
    probability, and logs which (interleaving) or whose each document is (arm, credit). Arms are
    named after their files, or by --arms. The seed, the way and the digests of the runs stand in
    the file's schema.

    Example: dualrank interleave build old.run new.run --out lists.parquet

    Example: dualrank interleave build a.csv b.csv c.csv --out lists.parquet --arms now,bm25,dnn
    """
    from dualrank.data.runs import read_rankings
    from dualrank.decisions.interleaving_lists import arm_names, build_lists, read_queries
    from dualrank.storage import require_suffix, sha256_of_file

    require_suffix(out, "a file of interleavings", ".parquet")
    names = arm_names(runs, _split(arms))
    chosen = None if queries is None else read_queries(queries)
    with one_bar("reading runs"):
        rankings = {name: read_rankings(p, depth) for name, p in zip(names, runs, strict=True)}
        digests = {name: sha256_of_file(p) for name, p in zip(names, runs, strict=True)}
    with one_bar("interleaving") as report:
        made = build_lists(
            rankings,
            way=way,  # type: ignore[arg-type]
            depth=depth,
            per_query=per_query,
            queries=chosen,
            seed=seed,
            digests=digests,
            progress=report,
        )
    made.write(out)
    about = made.making
    answer(
        as_json,
        {"file": str(out), **asdict(about)},
        f"{out}: {counted(about.lists, 'lists')} of {counted(about.queries, 'queries')}, "
        f"{about.way} of {', '.join(about.arms)}",
        f"{counted(about.left_out, 'queries')} not ranked by every arm left out"
        if about.left_out
        else None,
        f"{counted(about.drafted, 'queries')} without a neutral choice of lists have team drafts"
        if about.drafted
        else None,
    )


def read(
    log: Log,
    lists: Annotated[
        Path | None,
        typer.Option("--lists", help="The lists that were served, as `interleave build` wrote."),
    ] = None,
    arms: Arms = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until", help="Sessions after which the experiment was planned to end.", min=1
        ),
    ] = None,
    permutations: Annotated[int, typer.Option(help="Of the permutation test.", min=1)] = 10_000,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The directory for report.html, comparison.json, queries.csv."),
        INTERLEAVING,
    ] = None,
    *,
    options: Annotated[LogOptions, Without("contexts", "event_kinds")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say which arm users prefer, from the clicks on interleaved lists.

    The log has one row per displayed document, impressions without clicks included, with a column
    arm (or team), or goes with the --lists that were served; or it has the events that OpenSearch
    writes. The interval holds on every day, so that one may look, and stop, whenever one likes;
    where the end is planned, --until makes it narrower.

    Example: dualrank interleave read clicks.parquet --lists lists.parquet --out report/

    Example: dualrank interleave read ubi_events.ndjson --arms 6f1c…,b07e…
    """
    from dualrank.decisions.interleaving_log import read_interleaved
    from dualrank.decisions.preference import compare
    from dualrank.decisions.preference_words import verdict
    from dualrank.report.interleaving_report import preference_table, write_interleaving

    name = Path(log).name
    with one_bar(f"reading {name}") as report:
        found = read_interleaved(
            log, lists=lists, arms=_split(arms), options=options, progress=report
        )
    with one_bar("comparing"):
        compared = compare(found, until=until, permutations=permutations, seed=seed)
    written = [] if out is None else write_interleaving(compared, found, out, name, typed_command())
    table = preference_table(compared)
    answer(
        as_json,
        compared.to_dict(),
        *verdict(compared),
        "",
        table,
        table.remark,
        *compared.notes,
        f"written to {', '.join(str(path) for path in written)}" if written else None,
    )


def _split(arms: str | None) -> list[str]:
    return [] if arms is None else [arm.strip() for arm in arms.split(",") if arm.strip()]
