"""`dualrank reduce`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dualrank.cli.outputs import NewFile
from dualrank.cli.terminal import Json, Log, Seed, answer, one_bar
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import SettingsError
from dualrank.sentences import counted

if TYPE_CHECKING:
    from dualrank.data.log.reading_report import ReadingReport
    from dualrank.report import Table


logger = logging.getLogger(__name__)


def reduce(
    log: Log,
    out: Annotated[
        Path,
        typer.Option("--out", help="The reduced log to write (.parquet)."),
        NewFile("dualrank.log"),
    ],
    events: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="UBI events; LOG holds the UBI queries, and may be the same file."
        ),
    ] = None,
    action: Annotated[
        list[str] | None, typer.Option("--action", help="UBI actions that are clicks. Repeatable.")
    ] = None,
    *,
    options: LogOptions,
    periods: Annotated[
        int, typer.Option(help="Parts into which a log with timestamps is cut.", min=0)
    ] = 4,
    engine: Annotated[
        Literal["duckdb", "spark"], typer.Option(help="What does the work.")
    ] = "duckdb",
    memory: Annotated[
        str | None,
        typer.Option(help="DuckDB's memory; beyond it, disk.", show_default="1200MB"),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, such as yarn.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Check a click log and reduce it to the distinct things that happened, with counts.

    Prints what was read, what was left out, and why. The reduced log is what every other command
    takes as LOG, in a fraction of the time.

    Example: dualrank reduce clicks/ --column doc_id=item --context device --out log.parquet

    Example: dualrank reduce clicks/ --event cart --event purchase --out log.parquet

    Example: dualrank reduce ubi.ndjson --events ubi.ndjson --event add_to_cart --out log.parquet
    """
    from dualrank.data.log.reading_report import BadLogError
    from dualrank.data.log.saved import write_log
    from dualrank.storage import require_suffix

    require_suffix(out, "a reduced log", ".parquet")
    if action and events is None:
        raise SettingsError("--action chooses among UBI events; give them as --events")
    if engine == "spark" and events is not None:
        raise SettingsError("UBI exports are read by --engine duckdb alone")
    if engine == "spark" and memory is not None:
        raise SettingsError("--memory is DuckDB's; the memory of Spark is set where it runs")
    if engine == "duckdb" and master is not None:
        raise SettingsError("--master is Spark's; give it with --engine spark")
    try:
        with one_bar(f"reading {Path(log).name}") as report:
            if engine == "spark":
                from dualrank.data.log.spark import read_log_on_spark

                found = read_log_on_spark(log, master=master, options=options)
            else:
                from dualrank.data.log.engine import MEMORY_LIMIT
                from dualrank.data.log.read_log import read_log

                found = read_log(
                    log,
                    events=events,
                    actions=tuple(action or ("click",)),
                    memory=memory or MEMORY_LIMIT,
                    options=options,
                    progress=report,
                )
    except BadLogError as error:
        reading = error.reading
        answer(as_json, {"log": None, "reading": reading.to_dict()}, *_account(reading))
        raise
    write_log(found, out)
    if not found.clicks.any():
        logger.warning(
            "%s: there is no click in this log, and nothing can be learned from it; look at "
            "`clicked`, or at --action for UBI events",
            log,
        )
    assert found.reading is not None
    if found.reading.clicks_alone:
        logger.warning(
            "%s: every row of this log is a click; what was displayed and not clicked is missing, "
            "and without it nothing can be learned of position or relevance",
            log,
        )
    sizes = {
        "sessions": found.sessions,
        "lists": len(found.lists),
        "patterns": len(found.counts),
    }
    sums = {kind: float(amounts.sum()) for kind, amounts in found.events.items()}
    kept = [f"{kind} {amount:,.6g}" for kind, amount in sums.items()]
    answer(
        as_json,
        {"log": str(out), **sizes, "events": sums, "reading": found.reading.to_dict()},
        *_account(found.reading),
        f"{out}: {', '.join(counted(value, name) for name, value in sizes.items())}",
        f"besides clicks: {', '.join(kept)}" if kept else None,
    )


def _account(reading: ReadingReport) -> tuple[str | Table | None, ...]:
    """What was read and left out, and who clicked most."""
    from dualrank.report import clients_table, left_out_table

    read = [
        counted(reading.rows, "rows"),
        counted(reading.sessions, "sessions"),
        counted(reading.clicks, "clicks"),
    ]
    said = f"{reading.source}: {', '.join(read)}"
    return said, left_out_table(reading), clients_table(reading)
