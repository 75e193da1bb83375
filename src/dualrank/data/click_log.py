"""The noun that carries clicks: the distinct things that happened, with how often they did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log_card import click_log_card, draw_click_through
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.log.reading_report import ReadingReport
from dualrank.errors import DataError
from dualrank.showing.axes import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PERIOD = "period"
"""The column that says in which part of the log's time a session was."""

MOST_SESSIONS = 2**50
"""Below it, sums of sessions over all positions are exact, as whole numbers and as floats."""


@dataclass(frozen=True, eq=False)
class Column:
    """What else is known of the sessions of each row: `names[codes[p]]`, such as a device."""

    names: tuple[str, ...]
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Displayed lists, and the click patterns that were seen on each, with a count.

    `clicks[p]` is one pattern on list `list_of[p]`, seen in `counts[p]` sessions. A log of
    millions of sessions becomes as many rows as there are different things that happened.

    `columns` hold what else tells sessions apart: contexts such as a device, and the `PERIOD` of
    the log. Sessions that differ in one of them stand in rows of their own. `catalogue` names the
    documents that the lists point to.

    `events` hold what users did besides clicking, by kind and laid out like `clicks`: the sum over
    the sessions of a row of the amount at each position. A purchase that is 0 or 1 sums to a count,
    a dwell time to seconds.
    """

    lists: RankedLists
    list_of: NDArray[np.int32]
    clicks: NDArray[np.bool_]
    counts: NDArray[np.int64]
    columns: Mapping[str, Column] = field(default_factory=dict)
    catalogue: Catalogue | None = None
    reading: ReadingReport | None = None
    """What was read from the log's files, and what was left out and why."""
    events: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"ClickLog({self.sessions} sessions, {len(self.lists)} lists, "
            f"{len(self.counts)} click patterns)"
        )

    def _repr_html_(self) -> str:
        """A card for notebooks: how much the log holds, and clicks by position."""
        return click_log_card(self)

    def plot(self, ax: Axes | None = None, *, label: str = "all sessions", **style: Any) -> Axes:
        """Draw click-through by position: the share of what was displayed there that was clicked.

        It falls by what users examine and by what the ranker put first, and does not tell one from
        the other. Parts come on one picture by giving the axes on, each with its `label`; `style`
        goes to matplotlib. Needs matplotlib.

        >>> from matplotlib.figure import Figure
        >>> lists = RankedLists(np.array([[0, 1]]), np.array([0]))
        >>> clicks = np.array([[True, False], [True, True]])
        >>> log = ClickLog.from_clicks(lists, np.zeros(2, int), clicks, np.array([3, 1]))
        >>> ax = log.plot(Figure().subplots())
        >>> ax.lines[0].get_ydata().tolist()
        [1.0, 0.25]
        """
        ax = axes_for(ax)
        draw_click_through(ax, self, label, **style)
        return ax

    @property
    def sessions(self) -> int:
        """How many sessions were logged, with and without clicks."""
        return int(self.counts.sum())

    @property
    def sessions_per_list(self) -> NDArray[np.int64]:
        """Sessions in which each list was displayed."""
        return np.bincount(self.list_of, self.counts, len(self.lists)).astype(np.int64)

    @property
    def clicks_per_list(self) -> NDArray[np.int64]:
        """Clicks on every position of each list, summed over its sessions."""
        columns = [
            np.bincount(self.list_of[on], self.counts[on], len(self.lists)) for on in self.clicks.T
        ]
        return np.stack(columns, axis=1).astype(np.int64)

    def take_lists(self, chosen: NDArray[np.integer]) -> ClickLog:
        """The part of the log on these lists (indices, each at most once)."""
        new_index = np.full(len(self.lists), -1, dtype=np.int32)
        new_index[chosen] = np.arange(len(chosen))
        part = self.take_rows(np.flatnonzero(new_index[self.list_of] >= 0))
        lists = RankedLists(self.lists.documents[chosen], self.lists.queries[chosen])
        return replace(part, lists=lists, list_of=new_index[part.list_of])

    def take_rows(self, rows: NDArray[np.integer]) -> ClickLog:
        """These rows only, over the same lists (some of which may then have no session)."""
        columns = {
            name: Column(column.names, column.codes[rows]) for name, column in self.columns.items()
        }
        return replace(
            self,
            list_of=self.list_of[rows],
            clicks=self.clicks[rows],
            counts=self.counts[rows],
            columns=columns,
            events={kind: amounts[rows] for kind, amounts in self.events.items()},
        )

    def column(self, name: str) -> Column:
        """One of `columns`, or an error that says which there are."""
        if name not in self.columns:
            known = ", ".join(self.columns) or "none"
            raise DataError(f"the log has no column {name!r} beside the clicks; it has {known}")
        return self.columns[name]

    def event(self, kind: str) -> NDArray[np.float64]:
        """One of `events`, or an error that says which there are."""
        if kind not in self.events:
            known = ", ".join(self.events) or "none"
            raise DataError(
                f"the log has no event {kind!r} besides clicks; it has {known}: events are named "
                "when a log is read or reduced"
            )
        return self.events[kind]

    def split(self, name: str) -> dict[str, ClickLog]:
        """The log cut by the values of a column; each part has only the lists that it showed."""
        column = self.column(name)
        parts = {}
        for code, value in enumerate(column.names):
            part = self.take_rows(np.flatnonzero(column.codes == code))
            if len(part.counts):
                parts[value] = part.take_lists(np.unique(part.list_of))
        return parts

    @classmethod
    def from_clicks(
        cls,
        lists: RankedLists,
        list_of: NDArray[np.integer],
        clicks: NDArray[np.bool_],
        counts: NDArray[np.integer] | None = None,
        *,
        columns: Mapping[str, Column] | None = None,
        catalogue: Catalogue | None = None,
        events: Mapping[str, NDArray[np.floating]] | None = None,
    ) -> ClickLog:
        """Sum rows (by default one per session) into distinct patterns, and their events."""
        columns = columns or {}
        numbers = [np.asarray(list_of, dtype=">i4")]
        numbers += [c.codes.astype(_narrow(len(c.names))) for c in columns.values()]
        key = np.concatenate(
            [n[:, None].view(np.uint8) for n in numbers] + [np.packbits(clicks, axis=1)], axis=1
        )
        _, first, inverse = np.unique(_comparable(key), return_index=True, return_inverse=True)
        weights = np.ones(len(clicks)) if counts is None else np.asarray(counts)
        _check_counts(weights)
        return cls(
            lists,
            np.asarray(list_of, dtype=np.int32)[first],
            clicks[first],
            np.bincount(inverse, weights, len(first)).astype(np.int64),
            {name: Column(c.names, c.codes[first]) for name, c in columns.items()},
            catalogue,
            events={
                kind: _added_up(amounts, inverse.reshape(-1), len(first))
                for kind, amounts in (events or {}).items()
            },
        )

    @classmethod
    def read(cls, log: Any, dataset: Dataset | None = None, **options: Any) -> ClickLog:
        """Read a log in any format; see `dualrank.data.log.read_log.read_log` for the options."""
        from dualrank.data.log.read_log import read_log

        return read_log(log, dataset, **options)

    @classmethod
    def from_parquet(
        cls, path: str | Path, dataset: Dataset | None = None, **options: Any
    ) -> ClickLog:
        """Read a long log, one row per displayed document, from Parquet files."""
        return cls.read(path, dataset, **options)

    @classmethod
    def from_frame(cls, frame: Any, dataset: Dataset | None = None, **options: Any) -> ClickLog:
        """Read a long log from any Arrow-compatible data frame (pyarrow, pandas, polars)."""
        return cls.read(frame, dataset, **options)

    def to_table(self, named_by: Dataset | None = None) -> pa.Table:
        """The long log: one row per displayed document of every session, sessions numbered.

        Queries and documents are named by the log's own catalogue, or that of a data set.
        """
        catalogue = self.catalogue if named_by is None else named_by.catalogue
        if catalogue is None:
            raise DataError("this log does not know the names of its documents; give the data set")
        from dualrank.data.log.long import long_tables

        return pa.concat_tables(long_tables(self, catalogue))


def _check_counts(counts: NDArray[np.number]) -> None:
    """Refuse counts that are none, or whose sums would not be exact."""
    if len(counts) and not counts.min() >= 0:
        raise DataError(f"a log counts {counts.min()} sessions; expected 0 or more")
    if not counts.sum(dtype=np.float64) < MOST_SESSIONS:
        raise DataError(
            f"a log of {counts.sum(dtype=np.float64):.3g} sessions; sums are exact below "
            f"{MOST_SESSIONS:.3g}: divide the counts"
        )


def _added_up(
    amounts: NDArray[np.floating], row_of: NDArray[np.integer], rows: int
) -> NDArray[np.float64]:
    """Rows of amounts summed into those that they became."""
    sums = [np.bincount(row_of, column, rows) for column in amounts.T]
    return np.stack(sums, axis=1) if sums else np.zeros((rows, 0))


def _narrow(values: int) -> str:
    """The narrowest type for so many codes, whose bytes sort as the numbers do."""
    return next(
        kind for kind, most in ((">u1", 2**8), (">u2", 2**16), (">u4", 2**32)) if values <= most
    )


def _comparable(key: NDArray[np.uint8]) -> NDArray[np.generic]:
    """Rows of bytes as single values in the same order; up to eight bytes as numbers, which sort
    several times faster."""
    width = key.shape[1]
    if width > 8:
        return np.ascontiguousarray(key).view(f"V{width}")[:, 0]
    wide = np.zeros((len(key), 8), dtype=np.uint8)
    wide[:, 8 - width :] = key
    return wide.view(">u8")[:, 0].astype(np.uint64)
