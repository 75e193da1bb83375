"""What a format of logs is: files that are recognised, and how they become rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualrank.data.log.columns import Columns, find_columns
from dualrank.data.log.folder_columns import add_columns, named_by_folders
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reading_report import Problem

if TYPE_CHECKING:
    from dualrank.data.log.duckdb_engine import DuckDBEngine


@dataclass(frozen=True)
class Source:
    """The files of a log, all of one format; `name` is what the user called them."""

    name: str
    files: tuple[str, ...]
    format: LogFormat


class LogFormat:
    """A format: give a `title`, the `suffixes` of its files or how they begin, and `rows`.

    Where rows of one displayed document each are not all there is to it, override `open`.
    """

    title: str
    suffixes: tuple[str, ...] = ()
    begins: bytes | None = None
    """What every file starts with, and no file of another format does."""

    def rows(self, engine: DuckDBEngine, source: Source) -> str:
        """The query for the rows of these files."""
        raise NotImplementedError

    def open(
        self, engine: DuckDBEngine, source: Source, options: LogOptions
    ) -> tuple[Columns, Sequence[Problem]]:
        """Make the table `log`; its columns, and what was found wrong on the way."""
        engine.open(source)
        named = named_by_folders(options, engine.types("log"), source.files)
        if named:
            add_columns(engine, source, named)
        return find_columns(engine.types("log"), options, where=source.name), ()
