"""`dualrank reduce`."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.log_options import (
    Columns,
    Contexts,
    FirstPosition,
    Log,
    MaxBadShare,
    MaxClicks,
    MaxClientShare,
    column_names,
)
from dualrank.cli.terminal import Json, Seed, one_bar, print_json, result_console
from dualrank.errors import SettingsError

if TYPE_CHECKING:
    from dualrank.data.click_log import ClickLog
    from dualrank.data.log.reading_report import ReadingReport


logger = logging.getLogger(__name__)


class EngineName(StrEnum):
    """What does the counting."""

    duckdb = "duckdb"
    spark = "spark"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(reduce)


def reduce(
    log: Log,
    out: Annotated[Path, typer.Option("--out", help="The reduced log to write (.parquet).")],
    events: Annotated[
        str | None,
        typer.Option(help="UBI events; LOG then holds the UBI queries."),
    ] = None,
    action: Annotated[
        list[str] | None, typer.Option("--action", help="UBI actions that are clicks. Repeatable.")
    ] = None,
    column: Columns = None,
    context: Contexts = None,
    first_position: FirstPosition = 1,
    periods: Annotated[
        int, typer.Option(help="Parts into which a log with timestamps is cut.", min=0)
    ] = 4,
    max_bad_share: MaxBadShare = 0.0,
    max_clicks: MaxClicks = None,
    max_client_share: MaxClientShare = None,
    engine: Annotated[EngineName, typer.Option(help="What does the work.")] = EngineName.duckdb,
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
    """
    from dualrank.data.log.engine import MEMORY_LIMIT
    from dualrank.data.log.read_log import read_log
    from dualrank.data.log.reading_report import BadLogError, counted
    from dualrank.data.log.saved import write_log

    if out.suffix != ".parquet":
        raise SettingsError(f"{out}: a reduced log is written as .parquet")
    if action and events is None:
        raise SettingsError("--action chooses among UBI events; give them as --events")
    if engine is EngineName.spark:
        if events is not None:
            raise SettingsError("UBI exports are read by --engine duckdb alone")
        if memory is not None:
            raise SettingsError("--memory is DuckDB's; the memory of Spark is set where it runs")
    elif master is not None:
        raise SettingsError("--master is Spark's; give it with --engine spark")
    options: dict[str, Any] = {
        "columns": column_names(column),
        "contexts": context or (),
        "first_position": first_position,
        "periods": periods,
        "max_bad_share": max_bad_share,
        "max_clicks": max_clicks,
        "max_client_share": max_client_share,
    }
    try:
        with one_bar(f"reading {Path(log).name}"):
            if engine is EngineName.spark:
                from dualrank.data.log.spark import read_log_on_spark

                found = read_log_on_spark(log, master=master, **options)
            else:
                if events is not None:
                    options |= {"events": events, "actions": tuple(action or ("click",))}
                found = read_log(log, memory=memory or MEMORY_LIMIT, **options)
    except BadLogError as error:
        if as_json:
            print_json({"log": None, "reading": error.reading.to_dict()})
        else:
            _print(error.reading)
        raise
    write_log(found, out)
    if not found.clicks.any():
        logger.warning(
            "%s: there is no click in this log, and nothing can be learned from it; look at "
            "`clicked`, or at --action for UBI events",
            log,
        )
    assert found.reading is not None
    if as_json:
        print_json({"log": str(out), **_sizes(found), "reading": found.reading.to_dict()})
        return
    _print(found.reading)
    sizes = ", ".join(counted(value, name) for name, value in _sizes(found).items())
    typer.echo(f"{out}: {sizes}")


def _sizes(log: ClickLog) -> dict[str, int]:
    return {"sessions": log.sessions, "lists": len(log.lists), "patterns": len(log.counts)}


def _print(reading: ReadingReport) -> None:
    """What was read and left out, and who clicked most."""
    from rich.table import Table

    from dualrank.data.log.reading_report import counted

    console = result_console()
    console.print(
        f"{reading.source}: {counted(reading.rows, 'rows')}, "
        f"{counted(reading.sessions, 'sessions')}, {counted(reading.clicks, 'clicks')}",
        soft_wrap=True,
    )
    table = Table()
    for title in ("found", "how often", "was", "example"):
        table.add_column(title, justify="right" if title == "how often" else "left")
    for row in reading.table():
        table.add_row(*row)
    if table.row_count:
        console.print(table)
    if reading.clients:
        clients = Table(title="clients that clicked most")
        for title in ("client", "sessions", "of sessions", "clicks", "of clicks", ""):
            clients.add_column(title, justify="left" if title in ("client", "") else "right")
        for client in reading.clients:
            clients.add_row(
                client.name,
                f"{client.sessions:,}",
                f"{client.share_of_sessions:.2%}",
                f"{client.clicks:,}",
                f"{client.share_of_clicks:.2%}",
                "left out" if client.left_out else "",
            )
        console.print(clients)
