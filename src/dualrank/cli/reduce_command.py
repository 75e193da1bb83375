"""`dualrank reduce`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dualrank.cli.options import Typed
from dualrank.cli.outputs import NewFolder, NewLog
from dualrank.cli.terminal import Json, Seed, answer, one_bar
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import SettingsError
from dualrank.sentences import counted

if TYPE_CHECKING:
    from dualrank.data.click_log import ClickLog
    from dualrank.data.log.reading_report import ReadingReport
    from dualrank.data.shards.sharded_log import ShardedLog
    from dualrank.report import Table


logger = logging.getLogger(__name__)


def reduce(
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG",
            help="The click log: Parquet, CSV or JSON lines; a file, folder, pattern, or reduced "
            "log.",
        ),
    ] = None,
    day: Annotated[
        str | None,
        typer.Argument(
            metavar="[day=DAY]",
            help="With --append: which day LOG is, where it is not called after it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The reduced log to write (.parquet), or a folder of shards."),
        NewLog(),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            help="Cut the reduced log into so many parts by query, for what is larger than memory.",
            min=1,
            max=10_000,
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="FILES",
            help="With --shards: features (Parquet), which then lie beside the log they belong to.",
        ),
    ] = None,
    append: Annotated[
        Path | None,
        typer.Option("--append", metavar="DIR", help="A folder of days, to which LOG is added."),
        NewFolder("*.parquet"),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="DAY", help="Remove a day from the folder. Repeatable."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option(help="Remove all but so many last days from the folder.", min=1)
    ] = None,
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
    typed: Typed,
) -> None:
    """Check a click log and reduce it to the distinct things that happened, with counts.

    Prints what was read, what was left out, and why. The reduced log is what every other command
    takes as LOG, in a fraction of the time; so is a folder of days, whose sum it takes.

    Example: dualrank reduce clicks/ --column doc_id=item --context device --out log.parquet

    Example: dualrank reduce clicks/ --event cart --event purchase --out log.parquet

    Example: dualrank reduce ubi.ndjson --events ubi.ndjson --event add_to_cart --out log.parquet

    Example: dualrank reduce clicks/ --shards 64 --features features/ --out log/

    Example: dualrank reduce clicks/today.parquet --append log/ day=2026-11-02 --keep 30
    """
    from dualrank.data.log.read_log import is_reduced
    from dualrank.data.log.saved import write_log
    from dualrank.storage import require_suffix

    if action and events is None:
        raise SettingsError("--action chooses among UBI events; give them as --events")
    if engine == "spark" and events is not None:
        raise SettingsError("UBI exports are read by --engine duckdb alone")
    if engine == "spark" and memory is not None:
        raise SettingsError("--memory is DuckDB's; the memory of Spark is set where it runs")
    if engine == "duckdb" and master is not None:
        raise SettingsError("--master is Spark's; give it with --engine spark")
    if (out is None) == (append is None):
        raise SettingsError("give --out for a reduced log, or --append for a folder of days")
    if shards is not None and out is None:
        raise SettingsError("shards are written into a folder of their own; give it as --out")
    if shards is not None and out is not None and out.suffix == ".parquet":
        raise SettingsError(f"{out}: the name of a file; shards are written into a folder")
    if features is not None and shards is None:
        raise SettingsError(
            "features lie beside the shards of a log; give --shards, or the features to `train`"
        )
    if engine == "spark" and log is not None and Path(log).exists() and is_reduced(log):
        raise SettingsError(f"{log}: this log is reduced already; read it with --engine duckdb")
    if day is not None and not day.startswith("day="):
        raise SettingsError(
            f"{day!r} is one LOG too many; several files are given as a folder, or as a pattern in "
            "quotes"
        )
    if append is None and (day or drop or keep):
        raise SettingsError("days are those of a folder; give it as --append")
    if log is None and not (drop or keep):
        raise SettingsError("give the LOG that is to be reduced")

    reading = _Reading(events, tuple(action or ()), engine, memory, master, as_json)
    if append is not None:
        if "periods" in typed:
            raise SettingsError(
                "--periods is not for --append: a folder of days is cut by its days"
            )
        options = replace(options, periods=0)
        _change_days(append, log, day, drop or [], keep, options, reading, bool(typed.get("force")))
        return
    assert out is not None
    assert log is not None
    if shards is not None:
        content, *shown = _told_of_shards(reading.cut(log, options, out, shards, features))
        answer(as_json, {"log": str(out), **content}, *shown)
        return
    require_suffix(out, "a reduced log", ".parquet")
    found = reading.read(log, options)
    write_log(found, out)
    content, *shown = _told(found, out)
    answer(as_json, {"log": str(out), **content}, *shown)


@dataclass(frozen=True)
class _Reading:
    """What a log is read with, besides its options."""

    events: str | None
    actions: tuple[str, ...]
    engine: str
    memory: str | None
    master: str | None
    as_json: bool

    def read(self, log: str, options: LogOptions) -> ClickLog:
        """The reduced log; of one that is too bad, the account is printed before the error."""
        with self._answered(), one_bar(f"reading {Path(log).name}") as report:
            if self.engine == "spark":
                from dualrank.data.log.spark import read_log_on_spark

                return read_log_on_spark(log, master=self.master, options=options)
            from dualrank.data.log.read_log import read_log

            return read_log(log, options=options, progress=report, **self._of_duckdb())

    def cut(
        self, log: str, options: LogOptions, out: Path, shards: int, features: str | None
    ) -> ShardedLog:
        """The reduced log in shards."""
        with self._answered(), one_bar(f"reading {Path(log).name}") as report:
            if self.engine == "spark":
                from dualrank.data.shards.shards_on_spark import reduce_to_shards_on_spark

                return reduce_to_shards_on_spark(
                    log,
                    out,
                    shards,
                    features,
                    master=self.master,
                    options=options,
                    progress=report,
                )
            from dualrank.data.shards.reduce_to_shards import reduce_to_shards

            return reduce_to_shards(
                log, out, shards, features, options=options, progress=report, **self._of_duckdb()
            )

    def _of_duckdb(self) -> dict[str, Any]:
        from dualrank.data.log.duckdb_engine import MEMORY_LIMIT

        return {
            "events": self.events,
            "actions": self.actions or ("click",),
            "memory": self.memory or MEMORY_LIMIT,
        }

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """Print the account of a log that is refused, before the error."""
        from dualrank.data.log.reading_report import BadLogError

        try:
            yield
        except BadLogError as error:
            account = error.reading
            content = {"log": None, "reading": account.to_dict()}
            answer(self.as_json, content, *_account(account))
            raise


def _change_days(
    append: Path,
    log: str | None,
    day: str | None,
    drop: list[str],
    keep: int | None,
    options: LogOptions,
    reading: _Reading,
    force: bool,
) -> None:
    """Add a day to a folder, and drop others; everything that can be refused is, before work."""
    from dualrank.data.log.days import LogFolder, day_name, day_of_log
    from dualrank.data.log.read_log import is_reduced

    folder, dropped = LogFolder(append), [day_name(each) for each in dict.fromkeys(drop)]
    content: dict[str, Any] = {}
    shown: list[str | Table | None] = []
    name = None
    with folder.held():
        folder.require(dropped)
        if log is not None:
            if day is None and log.startswith("day=") and not Path(log).exists():
                raise SettingsError(f"{log}: no such log; the LOG of a day goes before its name")
            name = day_of_log(log) if day is None else day_name(day)
            if name in dropped:
                raise SettingsError(f"{append}: the day {name} is both added and dropped")
            folder.refuse(name, options, reading.actions, force=force)
            if reading.engine == "duckdb" and is_reduced(log):
                raise SettingsError(f"{log}: reduced already; a day is reduced from its own rows")
            found = reading.read(log, options)
            folder.add(name, found, options, reading.actions)
            content, *shown = _told(found, folder.path(name))
        left = [each for each in folder.names if each not in dropped]
        dropped += left[:-keep] if keep else []
        folder.drop(dropped)
        left = folder.names
    shown.append(f"dropped: {', '.join(dropped)}" if dropped else None)
    range_ = f" from {left[0]} to {left[-1]}" if left else ""
    shown.append(f"{append}: {counted(len(left), 'days')}{range_}")
    whole = {"log": str(append), "day": name, "days": left, "dropped": dropped}
    answer(reading.as_json, {**whole, **content}, *shown)


def _told_of_shards(found: ShardedLog) -> tuple[Any, ...]:
    """What was written, for machines and then for people."""
    reading = found.reading
    _warn(reading, clicked=any(shard.log.clicks.any() for shard in found.shards))
    sizes = {
        "sessions": found.sessions,
        "lists": found.lists,
        "shards": len(found.shards),
        "documents": found.documents,
    }
    held = ", ".join(counted(value, name) for name, value in sizes.items())
    features = None if found.feature_count is None else counted(found.feature_count, "features")
    return (
        {**sizes, "features": found.feature_count, "reading": reading.to_dict()},
        *_account(reading),
        f"{found.folder}: {held}" + (f" with {features}" if features else ", without features"),
    )


def _told(found: ClickLog, out: Path) -> tuple[Any, ...]:
    """What was written, for machines and then for people; warnings where it is of no use."""
    reading = found.reading
    assert reading is not None
    _warn(reading, clicked=bool(found.clicks.any()))
    sizes = {
        "sessions": found.sessions,
        "lists": len(found.lists),
        "patterns": len(found.counts),
    }
    sums = {kind: float(amounts.sum()) for kind, amounts in found.events.items()}
    kept = [f"{kind} {amount:,.6g}" for kind, amount in sums.items()]
    return (
        {**sizes, "events": sums, "reading": reading.to_dict()},
        *_account(reading),
        f"{out}: {', '.join(counted(value, name) for name, value in sizes.items())}",
        f"besides clicks: {', '.join(kept)}" if kept else None,
    )


def _warn(reading: ReadingReport, *, clicked: bool) -> None:
    """Say where a log is of no use."""
    if not clicked:
        logger.warning(
            "%s: there is no click in this log, and nothing can be learned from it; look at "
            "`clicked`, or at --action for UBI events",
            reading.source,
        )
    if reading.clicks_alone:
        logger.warning(
            "%s: every row of this log is a click; what was displayed and not clicked is missing, "
            "and without it nothing can be learned of position or relevance",
            reading.source,
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
