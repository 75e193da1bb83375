"""The tables of an event store, and what is asked of them, in a transaction that others hold.

Every question is one statement for a whole group: SQLite then works without Python's lock, and
threads that answer requests go on meanwhile. A statement for each row would wait for it each time.

    impressions   by number, in the order of arrival
    events        by impression and event id, which are there once
    early         events whose impression has not arrived (it may be on its way by another server)
    kinds         names of kinds of events
    segments      which impressions are in which segment, and what its files are
    state         a few numbers by name
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dualrank.errors import DataError, StorageError
from dualrank.sentences import reason_of, start_of

NAME = "_events.db"
FORMAT = 1
_APPLICATION = 0x64726576
_AT_ONCE = (256, 32, 4, 1)
"""Rows of one statement: few different statements, which SQLite keeps prepared."""
_READ_WHOLE = 1 << 28
"""Bytes up to which a file is checked as a whole when it is opened: more would take too long."""
_SCHEMA = """
CREATE TABLE impressions (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, arrived REAL NOT NULL, time REAL NOT NULL,
    query TEXT NOT NULL, documents TEXT NOT NULL, version INTEGER NOT NULL,
    swapped INTEGER NOT NULL, client TEXT NOT NULL, features BLOB NOT NULL);
CREATE INDEX by_arrival ON impressions (arrived);
CREATE TABLE events (
    impression INTEGER NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, kind INTEGER NOT NULL,
    amount REAL NOT NULL, time REAL NOT NULL, late INTEGER NOT NULL,
    PRIMARY KEY (impression, id)) WITHOUT ROWID;
CREATE TABLE early (
    impression TEXT NOT NULL, id TEXT NOT NULL, document TEXT NOT NULL, kind INTEGER NOT NULL,
    amount REAL NOT NULL, time REAL NOT NULL, PRIMARY KEY (impression, id)) WITHOUT ROWID;
CREATE TABLE kinds (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO kinds VALUES (0, 'click');
CREATE TABLE segments (
    number INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL,
    kinds INTEGER NOT NULL, written REAL, clicks_bytes INTEGER, clicks_sha256 TEXT,
    features_bytes INTEGER, features_sha256 TEXT, forgotten INTEGER NOT NULL DEFAULT 0);
CREATE TABLE state (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
"""


def open_tables(folder: Path) -> sqlite3.Connection:
    """The tables of a folder for the one who writes them, made where they are not there."""
    path = folder / NAME
    with mendable(path):
        connection = sqlite3.connect(
            path, timeout=5.0, isolation_level=None, check_same_thread=False
        )
        try:
            made = _is_empty(connection)
            if made:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            else:
                _require_ours(connection, path)
                _require_whole(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.execute(f"PRAGMA journal_size_limit = {1 << 26}")
            connection.execute("PRAGMA cache_size = -32000")
            if made:
                connection.executescript(
                    f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION}; "
                    f"PRAGMA user_version = {FORMAT}; COMMIT;"
                )
        except BaseException:
            connection.close()
            raise
        return connection


def open_to_read(folder: Path) -> sqlite3.Connection | None:
    """The tables for somebody who only reads, perhaps in another process; None without any."""
    path = folder / NAME
    if not path.exists():
        return None
    with mendable(path):
        connection = sqlite3.connect(
            path, timeout=5.0, isolation_level=None, check_same_thread=False
        )
        try:
            if _is_empty(connection):  # It is just being made.
                connection.close()
                return None
            _require_ours(connection, path)
            connection.execute("PRAGMA query_only = 1")
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All that is written within, on disk at the end, or nothing of it and a `StorageError`."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # Where the disk was full SQLite has gone back already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise StorageError(f"{path}: {_what_to_do(error)}") from error


@contextmanager
def mendable(path: Path) -> Iterator[None]:
    """What SQLite finds wrong with a file that is read, or what no store wrote, as one sentence."""
    try:
        yield
    except (sqlite3.Error, TypeError, ValueError, LookupError) as error:
        raise DataError(f"{path}: {_what_to_do(error)}") from error


def insert(
    connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]], *, how: str = ""
) -> None:
    """Put rows into a table; `how` may be `OR IGNORE`."""
    for part in _parts(rows):
        values = _values(len(part), len(part[0]))
        connection.execute(f"INSERT {how} INTO {table} {values}", _flat(part))


def find(
    connection: sqlite3.Connection, impression_ids: Sequence[str]
) -> dict[str, tuple[int, list[str]]]:
    """Number and documents of those impressions that are there, by id."""
    found = dict[str, tuple[int, list[str]]]()
    for part in _parts([(place, each) for place, each in enumerate(impression_ids)]):
        (text,) = connection.execute(
            f"WITH wanted(place, id) AS ({_values(len(part), 2)}) "
            "SELECT json_group_array(json_array(w.place, i.number, i.documents)) "
            "FROM wanted w CROSS JOIN impressions i ON i.id = w.id",
            _flat(part),
        ).fetchone()
        for place, number, documents in json.loads(text):
            found[impression_ids[place]] = (number, json.loads(documents))
    return found


def known_events(
    connection: sqlite3.Connection, keys: Sequence[tuple[int | str, str]], table: str = "events"
) -> set[int]:
    """Which of the pairs of impression and event id are there, by their places in `keys`."""
    found = set[int]()
    for part in _parts([(place, *key) for place, key in enumerate(keys)]):
        (text,) = connection.execute(
            f"WITH wanted(place, impression, id) AS ({_values(len(part), 3)}) "
            "SELECT json_group_array(w.place) FROM wanted w "
            f"CROSS JOIN {table} e ON e.impression = w.impression AND e.id = w.id",
            _flat(part),
        ).fetchone()
        found.update(json.loads(text))
    return found


def take_early(
    connection: sqlite3.Connection, impression_ids: Sequence[str]
) -> list[tuple[str, str, str, int, float, float]]:
    """Events that waited for these impressions; they wait no longer."""
    found = list[tuple[str, str, str, int, float, float]]()
    for part in _parts([(each,) for each in impression_ids]):
        wanted = f"(SELECT column1 FROM ({_values(len(part), 1)}))"
        found += connection.execute(
            "SELECT impression, id, document, kind, amount, time FROM early "
            f"WHERE impression IN {wanted}",
            _flat(part),
        )
        connection.execute(f"DELETE FROM early WHERE impression IN {wanted}", _flat(part))
    return found


def closed_to(connection: sqlite3.Connection) -> int:
    """The number of the last impression that is in a segment; 0 without any."""
    return only(connection, "SELECT last FROM segments ORDER BY number DESC LIMIT 1") or 0


def add_to(connection: sqlite3.Connection, name: str, amount: float) -> None:
    """Add to a number of the state."""
    connection.execute(
        "INSERT INTO state VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        (name, amount),
    )


def only(connection: sqlite3.Connection, question: str, *values: Any) -> Any:
    """The one value that a question asks for; None without any."""
    row = connection.execute(question, values).fetchone()
    return None if row is None else row[0]


def _parts(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    start = 0
    for size in _AT_ONCE:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


def _values(rows: int, columns: int) -> str:
    return "VALUES " + ",".join([f"({','.join('?' * columns)})"] * rows)


def _flat(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [value for row in rows for value in row]


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not only(connection, "SELECT count(*) FROM sqlite_master")


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    if only(connection, "PRAGMA application_id") != _APPLICATION:
        raise DataError(f"{path}: a database of another program; choose another folder for events")
    found = only(connection, "PRAGMA user_version")
    if found != FORMAT:
        raise DataError(f"{path}: events of format {found}; this version reads {FORMAT}")


def _require_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is damaged somewhere; a large one is not read for that."""
    if path.stat().st_size <= _READ_WHOLE:
        found = only(connection, "PRAGMA quick_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(start_of(str(found)))


def _what_to_do(error: Exception) -> str:
    if isinstance(error, sqlite3.OperationalError):
        return f"cannot be written or read ({error}); make room, or mend the disk"
    return (
        f"damaged ({reason_of(error)}); move it away with the files whose names begin alike, and "
        "start again: segments that are written stay, and what is in none of them yet is lost"
    )
