"""Which sessions of a round are not to be learned from: a machine's clicks, a flood, one client.

The habits are those of `diagnostics.traffic`, applied while the clicks come in: what looks wrong is
left out, and said. Segments are tables with a row for every displayed document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.diagnostics.traffic import LARGE_CLIENT, NOTABLE, SHORTEST
from dualrank.sentences import counted, shortened

FEW = 10
"""Sessions of a client, and clients of a round, below which nothing is said of them."""
EVERYTHING = 0.5
"""The share of a client's sessions that click every result, from which on it is no person."""
FLOOD = 3.0
"""Clicks a session, as a multiple of what they were, beyond which a round is left out."""
FEWEST_CLICKS = 100
"""Expected clicks below which a round without any is no sign of anything."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Suspicion:
    """What looks wrong, in the words of an alarm, and the sessions that it concerns."""

    kind: str
    said: str


@dataclass(frozen=True, eq=False)
class Sessions:
    """The sessions of a table, by number: how many results, how many clicks, and whose they are."""

    of_row: NDArray[np.integer]
    shown: NDArray[np.int64]
    clicks: NDArray[np.int64]
    client: NDArray[np.integer] | None
    """A number for each client; −1 where it is not known."""
    clients: tuple[str, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Sessions:
        """Count them."""
        coded = table["session_id"].combine_chunks().dictionary_encode()
        row = coded.indices.to_numpy()
        count = len(coded.dictionary)
        shown = np.bincount(row, minlength=count)
        clicked = pc.fill_null(pc.cast(table["clicked"], pa.float64(), safe=False), 0.0)
        clicks = np.bincount(row, np.nan_to_num(clicked.to_numpy()), count).astype(np.int64)
        if "client_id" not in table.column_names:
            return cls(row, shown, clicks, None, ())
        texts = pc.fill_null(pc.cast(table["client_id"], pa.large_string()), "")
        names = texts.combine_chunks().dictionary_encode()
        client = np.full(count, -1, dtype=np.int64)
        client[row] = names.indices.to_numpy()
        known = tuple(names.dictionary.to_pylist())
        if "" in known:
            client[client == known.index("")] = -1
        return cls(row, shown, clicks, client, known)

    def __len__(self) -> int:
        return len(self.shown)

    @property
    def rate(self) -> float:
        """Clicks a session."""
        return float(self.clicks.sum() / max(len(self), 1))

    @property
    def click_everything(self) -> Bools:
        """Sessions in which every result of a list of five or more was clicked."""
        return np.asarray((self.clicks >= self.shown) & (self.shown >= SHORTEST))


def wrong_sessions(
    sessions: Sessions, rates: Sequence[float] = ()
) -> tuple[Bools, list[Suspicion]]:
    """The sessions to leave out, and why; `rates` are clicks a session of the rounds before."""
    left_out = np.zeros(len(sessions), dtype=bool)
    found = []
    for one in (_machines, _everything, _large_clients):
        wrong, suspicions = one(sessions, left_out)
        left_out |= wrong
        found += suspicions
    if len(sessions) and rates:
        usual = float(np.median(rates))
        kept = ~left_out
        rate = float(sessions.clicks[kept].sum() / max(kept.sum(), 1))
        # Where nothing was clicked before, clicks that begin are no flood.
        if rate > FLOOD * usual > 0 and sessions.clicks[kept].sum() >= FEWEST_CLICKS:
            said = (
                f"{rate:.3g} clicks a session, where it were {usual:.3g}: the round is left out of "
                "learning"
            )
            left_out[:] = True
            found.append(Suspicion("clicks", said))
        elif rate == 0 and usual * kept.sum() > FEWEST_CLICKS:
            said = (
                f"none of {counted(int(kept.sum()), 'sessions')} has a click, where it were "
                f"{usual:.3g} a session: are events still sent?"
            )
            found.append(Suspicion("clicks", said))
    return left_out, found


def _machines(sessions: Sessions, before: Bools) -> tuple[Bools, list[Suspicion]]:
    """Clients that click everything they are shown."""
    wrong = np.zeros(len(sessions), dtype=bool)
    if sessions.client is None:
        return wrong, []
    named = np.flatnonzero((sessions.client >= 0) & (sessions.shown >= SHORTEST))
    whose, count = sessions.client[named], len(sessions.clients)
    total = np.bincount(whose, minlength=count)
    everything = np.bincount(whose, sessions.click_everything[named], count)
    bad = np.flatnonzero((total >= FEW) & (everything > EVERYTHING * total))
    wrong = np.isin(sessions.client, bad)
    said = [
        Suspicion(
            "client",
            f"client {shortened(sessions.clients[each])} clicked every result in "
            f"{everything[each] / total[each]:.0%} of {counted(int(total[each]), 'sessions')}: "
            "left out of learning",
        )
        for each in bad
    ]
    return wrong, said


def _everything(sessions: Sessions, before: Bools) -> tuple[Bools, list[Suspicion]]:
    """Sessions that click everything, where they have a notable share of the clicks."""
    wrong = sessions.click_everything & ~before
    clicks = sessions.clicks[~before].sum()
    if wrong.sum() < FEW or sessions.clicks[wrong].sum() < NOTABLE * clicks:
        return np.zeros(len(sessions), dtype=bool), []
    share = sessions.clicks[wrong].sum() / clicks
    said = (
        f"{counted(int(wrong.sum()), 'sessions')} clicked every result, with {share:.1%} of the "
        "clicks: left out of learning"
    )
    return wrong, [Suspicion("clicks", said)]


def _large_clients(sessions: Sessions, before: Bools) -> tuple[Bools, list[Suspicion]]:
    """One client among many with a large part of all clicks."""
    wrong = np.zeros(len(sessions), dtype=bool)
    if sessions.client is None:
        return wrong, []
    kept = np.flatnonzero((sessions.client >= 0) & ~before)
    whose, count = sessions.client[kept], len(sessions.clients)
    clicks = np.bincount(whose, sessions.clicks[kept], count)
    all_clicks = sessions.clicks[~before].sum()
    if len(np.unique(whose)) < FEW or all_clicks < FEWEST_CLICKS:
        return wrong, []
    bad = np.flatnonzero(clicks > LARGE_CLIENT * all_clicks)
    said = [
        Suspicion(
            "client",
            f"client {shortened(sessions.clients[each])} made {clicks[each] / all_clicks:.1%} of "
            "the clicks: left out of learning",
        )
        for each in bad
    ]
    return np.isin(sessions.client, bad) & ~before, said
