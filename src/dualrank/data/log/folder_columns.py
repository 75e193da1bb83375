"""Columns that stand in the names of folders, as in `clicks/device=phone/part.parquet`.

They are taken only where the options ask for a column that no file has: a folder that happens to be
called `doc_id=5` does not change what the files say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dualrank.data.log.log_options import LogOptions

if TYPE_CHECKING:
    from dualrank.data.log.duckdb_engine import DuckDBEngine
    from dualrank.data.log.log_format import Source

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark call the folder of rows without a value."""


def named_by_folders(
    options: LogOptions, present: Iterable[str], files: Iterable[str]
) -> list[str]:
    """The columns that the options ask for, no file has, and some folder is named after."""
    asked = (*options.contexts, *options.columns.values(), *options.event_kinds)
    there = {name.lower() for name in present}
    folders = {part.partition("=")[0] for file in files for part in _folders(file)}
    return [n for n in dict.fromkeys(asked) if n.lower() not in there and n in folders]


def add_columns(engine: DuckDBEngine, source: Source, names: list[str]) -> None:
    """The view `log` with what the names of folders say of these columns."""
    groups: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for file in source.files:
        groups[tuple(_value(file, name) for name in names)].append(file)
    parts = []
    for number, (values, files) in enumerate(groups.items()):
        engine.open(replace(source, files=tuple(files)), f"folder_{number}")
        said = "".join(
            f", {'NULL' if value is None else engine.text(value)}::VARCHAR AS {engine.quote(name)}"
            for name, value in zip(names, values, strict=True)
        )
        parts.append(f"SELECT *{said} FROM folder_{number}")
    engine.view("log", " UNION ALL BY NAME ".join(parts))


def _folders(file: str) -> list[str]:
    return [part for part in file.split("/")[:-1] if "=" in part]


def _value(file: str, name: str) -> str | None:
    for part in reversed(_folders(file)):
        key, _, value = part.partition("=")
        if key == name:
            return None if value == NOTHING else unquote(value)
    return None
