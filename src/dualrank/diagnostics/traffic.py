"""Did people make these clicks?

Three habits of machines, each by the share of the log's clicks that it has: sessions that click
every result; sessions whose only click is on the last one, beyond what the two ranks above it
suggest; and one client with a large part of all clicks (where the log names clients).
"""

from __future__ import annotations

import numpy as np

from dualrank.certainty import alarm_errors
from dualrank.clicks.models.counting import rank_sums
from dualrank.data.click_log import ClickLog
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question, Status, worst

NAME = "traffic"
# Everything clicked, or only the last: shares of all clicks.
NOTABLE, LARGE = 0.01, 0.1
# One client.
NOTABLE_CLIENT, LARGE_CLIENT = 0.05, 0.2
# On shorter lists a person may well click everything, or the last result alone.
SHORTEST = 5


def traffic(facts: LogFacts) -> Point:
    """All three habits; the worst decides."""
    sessions, clicks = facts.parts.sessions, float(rank_sums(facts.parts)[0].sum())
    if clicks == 0:
        return Question(NAME).answer("good", "There are no clicks that anybody could have made up.")
    sums = np.zeros(4)
    for part in facts.parts:
        log = part.log
        sums += [*clicks_everything(log), *clicks_only_last(log)]
    all_sessions, all_clicks, last, neighbours = map(float, sums)
    is_luck = last - neighbours < alarm_errors() * np.sqrt(last + neighbours / 2)
    excess = 0.0 if is_luck else last - neighbours
    client, share = _largest_client(facts.log) or (None, None)
    numbers = {
        "share_of_sessions_that_click_everything": all_sessions / sessions,
        "share_of_clicks_of_these": all_clicks / clicks,
        "sessions_with_only_the_last_rank_clicked": last,
        "suggested_by_the_two_ranks_above": neighbours,
        "share_of_clicks_beyond": excess / clicks,
        "largest_client": client,
        "share_of_clicks_of_largest_client": share,
    }
    asked = Question(NAME, numbers)
    found: list[tuple[Status, str]] = [
        (
            _severity(all_clicks / clicks, NOTABLE, LARGE),
            f"sessions that click every result make {all_clicks / clicks:.1%} of the clicks",
        ),
        (
            _severity(excess / clicks, NOTABLE, LARGE),
            f"{last:,.0f} sessions click the last result only, where the ranks above it suggest "
            f"{neighbours:,.0f}",
        ),
    ]
    if share is not None:
        severity = _severity(share, NOTABLE_CLIENT, LARGE_CLIENT)
        found.append((severity, f"client {client} made {share:.1%} of the clicks"))
    status = worst(*(each for each, _ in found))
    bad = [words for each, words in found if each != "good"]
    if not bad:
        named = "" if client is not None else " (the log names no clients)"
        return asked.answer("good", f"Nothing looks like a machine's clicks{named}.")
    sentence = "; ".join(bad)
    return asked.answer(
        status,
        f"{sentence[0].upper()}{sentence[1:]}.",
        "Read the log without them: max_clicks leaves out sessions with many clicks, "
        "max_client_share large clients.",
    )


def clicks_everything(log: ClickLog) -> tuple[float, float]:
    """Sessions in which every result of a list of five or more was clicked, and their clicks."""
    length = log.lists.mask.sum(axis=1)[log.list_of]
    everything = (log.clicks.sum(axis=1) == length) & (length >= SHORTEST)
    counts = log.counts[everything]
    return float(counts.sum()), float(counts @ length[everything])


def clicks_only_last(log: ClickLog) -> tuple[float, float]:
    """Sessions whose only click is on the last rank, and the mean for the two ranks above it."""
    mask = log.lists.mask
    length = mask.sum(axis=1)[log.list_of]
    once = np.flatnonzero((log.clicks.sum(axis=1) == 1) & (length >= SHORTEST))
    below = mask.sum(axis=1, keepdims=True) - np.cumsum(mask, axis=1)
    from_end = below[log.list_of[once], log.clicks[once].argmax(axis=1)]
    last, above, further = (log.counts[once[from_end == place]].sum() for place in range(3))
    return float(last), float(above + further) / 2


def _largest_client(log: ClickLog) -> tuple[str, float] | None:
    """The client with most of the clicks that were kept, where clients are named."""
    clients = () if log.reading is None else log.reading.clients
    kept = [client for client in clients if not client.left_out]
    if not kept:
        return None
    largest = max(kept, key=lambda client: client.share_of_clicks)
    return largest.name, largest.share_of_clicks


def _severity(share: float, notable: float, large: float) -> Status:
    return "good" if share < notable else "warning" if share < large else "failed"
