"""What a reduction asks of a database, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

Progress = Callable[[int, int], None]

Type = str
"""boolean, integer, number, text, time or other."""


class Engine(Protocol):
    """A database that holds a log, and the few words in which its SQL differs from another's."""

    def types(self, table: str) -> Mapping[str, Type]:
        """The columns of a table or view, with what kind of value they hold."""

    def view(self, name: str, query: str) -> None:
        """Give a query a name."""

    def keep(self, name: str, query: str, by: str | None = None) -> None:
        """Run a query and keep its result under a name; rows with equal `by` near each other."""

    def fetch(self, query: str) -> pa.Table:
        """Run a query and bring its result here."""

    def quote(self, name: str) -> str:
        """A column's name, whatever characters it holds."""

    def hash(self, values: Sequence[str]) -> str:
        """64 bits that tell these values, any of which may be NULL, from others."""

    def sum_of_hashes(self, value: str) -> str:
        """What tells sums of 64-bit hashes from each other, without an overflow."""

    def bit(self, place: str) -> str:
        """2 to the power of `place`, a number from 0 to 62."""

    def shard(self, text: str, count: int) -> str:
        """Which of so many shards a text is in: the same on every engine, 0 for NULL."""

    def seconds(self, column: str, kind: Type) -> str:
        """The time in a column as seconds (or the number that stands there), NULL if unreadable."""


def only_value(engine: Engine, query: str) -> Any:
    """The only value of a query's result."""
    return engine.fetch(query).column(0)[0].as_py()


def numbered(*order: str) -> str:
    """The number of a row among those of its shard, from 0, in an order that leaves no choice."""
    return (
        f"CAST(row_number() OVER (PARTITION BY shard ORDER BY {', '.join(order)}) - 1 AS INTEGER)"
    )
