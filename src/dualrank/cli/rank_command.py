"""`dualrank rank`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

from dualrank.cli.options import Typed
from dualrank.cli.outputs import NewRun
from dualrank.cli.terminal import Json, Seed, answer, one_bar
from dualrank.errors import SettingsError

logger = logging.getLogger(__name__)


def rank(
    model: Annotated[Path, typer.Argument(help="A model directory.")],
    data: Annotated[
        str,
        typer.Argument(
            metavar="FEATURES",
            help="Parquet (a file, folder or pattern), LETOR text, or a log in shards; with "
            "--engine spark what Spark reads.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option("--out", help=".parquet, .csv, .run (TREC), or a folder for Parquet parts."),
        NewRun(),
    ],
    engine: Annotated[
        Literal["duckdb", "spark"], typer.Option(help="What brings documents into order.")
    ] = "duckdb",
    memory: Annotated[
        str | None, typer.Option(help="DuckDB's memory; beyond it, disk.", show_default="400MB")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, such as yarn.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    typed: Typed,
) -> None:
    """Score and rank the documents of every query.

    Parquet files may be larger than memory. On Spark, executors need numpy and pyarrow alone.

    Example: dualrank rank model/ data/test.txt --out scores.parquet

    Example: dualrank rank model/ features/ --engine spark --master yarn --out run/
    """
    from dualrank.learning.model import Model
    from dualrank.learning.rank_features import rank_features

    if engine == "spark" and memory is not None:
        raise SettingsError("--memory is DuckDB's; the memory of Spark is set where it runs")
    if engine == "duckdb" and master is not None:
        raise SettingsError("--master is Spark's; give it with --engine spark")
    ranker = Model.load(model)
    with one_bar(f"ranking {Path(data).name}") as report:
        if engine == "spark":
            from dualrank.learning.rank_on_spark import rank_on_spark

            replace = bool(typed.get("force"))
            found = rank_on_spark(ranker, data, out, master=master, replace=replace)
        else:
            limit = {} if memory is None else {"memory": memory}
            found = rank_features(ranker, data, out, progress=report, **limit)
    if found.warning is not None:
        logger.warning("%s: %s", model, found.warning)
    summary = {"run": out, "queries": found.queries, "documents": found.documents}
    answer(as_json, summary, f"{out}: {found.queries} queries, {found.documents} documents")
