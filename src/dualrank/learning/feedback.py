"""Where the labels of a training step come from: simulated users, a click log, or grades.

Every source draws a batch of lists with their labels. Queries keep their distribution: nothing is
redrawn until a click happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.dependence import read_down
from dualrank.clicks.user import User, perceived_relevance
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists, require_no_gaps
from dualrank.errors import DataError
from dualrank.learning.event_values import values_by_row
from dualrank.rankers.batch import Batch

LISTS_FOR_ONE_ORDER = 4
"""An order is worth several clicks, and costs as many documents more to score."""


class Feedback(Protocol):
    """A source of labelled lists."""

    @property
    def lists(self) -> RankedLists:
        """All lists that can be drawn."""

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Draw `size` sessions, one list each."""


class WholeFeedback(Feedback, Protocol):
    """A source that can also be taken at once, by rankers that do not go step by step."""

    def everything(self, size: int, rng: np.random.Generator) -> Batch:
        """All lists, with their queries and the clicks of all sessions (`size` simulated ones)."""


def require_clicks(clicks: float, sessions: int) -> None:
    """Refuse sessions without a click."""
    if not clicks:
        raise DataError(
            f"none of the {sessions} sessions has a click: there is nothing to learn from"
        )


def require_comparisons(lists: RankedLists) -> None:
    """Refuse lists on which no document could be preferred to another."""
    if not (lists.mask.sum(axis=1) > 1).any():
        raise DataError(
            "no list shows two documents: there is nothing to prefer one over another; put what "
            "one user saw at once under one session_id, or use method='stopping', which needs no "
            "second document"
        )


def require_read_down(lists: RankedLists) -> None:
    """Refuse gaps among several documents of lists that are read from the top."""
    if (lists.mask.sum(axis=1) > 1).any():
        who = "a method for users who stop"
        require_no_gaps(lists, who, "likelihood, dla and ipw learn from what is there")


class SimulatedClicks:
    """Clicks sampled on the fly: a query at random, its initial list, a fresh user every time.

    With `sessions` above 1, so many users look at each list that is drawn, and the labels are
    their mean clicks: the loss is linear in clicks, so the expected gradient is the same, and its
    noise is that of so many times the sessions.
    """

    def __init__(
        self, dataset: Dataset, lists: RankedLists, user: User, *, sessions: int = 1
    ) -> None:
        self.lists = lists
        self._sessions = sessions
        require_comparisons(lists)
        grades = lists.gather(dataset.require_grades())
        self._pages = user.browse(grades, lists.mask, dataset.max_grade)

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Draw lists uniformly and let users look at each."""
        chosen = rng.integers(len(self.lists), size=size)
        pages = self._pages.take(chosen)
        if self._sessions == 1:
            clicks: NDArray[np.generic] = pages.sample(rng)
        else:
            clicks = pages.sample_counts(self._sessions, rng)
        labels = clicks.astype(np.float32) / np.float32(self._sessions)
        return Batch(self.lists.documents[chosen], labels, size)

    def everything(self, size: int, rng: np.random.Generator) -> Batch:
        """The clicks of `size` times as many users as look at a list that is drawn."""
        size *= self._sessions
        lists = self.lists
        per_list = rng.multinomial(size, np.full(len(lists), 1 / len(lists)))
        clicks = self._pages.sample_counts(per_list, rng).astype(np.float32)
        return Batch(
            lists.documents,
            clicks,
            size,
            queries=lists.queries,
            sessions=per_list.astype(np.float32),
        )


class Labelled:
    """Lists with labels that stay: drawn in proportion to their sessions.

    Row r of labels, sessions, contexts and what is settled belongs to list `list_of[r]`; `ground`
    has a row for every list. Sessions that have faded are fractions.
    """

    def __init__(
        self,
        lists: RankedLists,
        labels: NDArray[np.floating],
        sessions: NDArray[np.int64] | NDArray[np.float64],
        *,
        list_of: NDArray[np.integer] | None = None,
        contexts: NDArray[np.int32] | None = None,
        ground: NDArray[np.float32] | None = None,
        examined: NDArray[np.floating] | None = None,
        settled: NDArray[np.float32] | None = None,
    ) -> None:
        self.lists = lists
        self._labels = labels.astype(np.float32)
        self._examined = None if examined is None else examined.astype(np.float32)
        self._sessions = sessions
        self._cumulative = np.cumsum(sessions)
        self.list_of = np.arange(len(lists)) if list_of is None else list_of
        self._contexts = contexts
        self._ground = ground
        self._settled = settled

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Draw lists in proportion to their sessions."""
        chosen = np.searchsorted(self._cumulative, self._tickets(size, rng), side="right")
        return Batch(
            self.lists.documents[self.list_of[chosen]],
            self._labels[chosen],
            size,
            None if self._contexts is None else self._contexts[chosen],
            ground=None if self._ground is None else self._ground[self.list_of[chosen]],
            examined=None if self._examined is None else self._examined[chosen],
            settled=None if self._settled is None else self._settled[chosen],
        )

    def _tickets(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        total = self._cumulative[-1]
        if np.issubdtype(self._cumulative.dtype, np.integer):
            return rng.integers(total, size=size)
        return total * rng.random(size)

    def everything(self, size: int, rng: np.random.Generator) -> Batch:
        """All lists with the sums of their labels over sessions."""
        sessions = self._sessions[:, None].astype(np.float32)
        return Batch(
            self.lists.documents[self.list_of],
            self._labels * sessions,
            int(self._cumulative[-1]),
            self._contexts,
            self.lists.queries[self.list_of],
            None if self._ground is None else self._ground[self.list_of],
            None if self._examined is None else self._examined * sessions,
            sessions[:, 0],
            self._settled,
        )


class Judgments(Labelled):
    """Grades in the place of clicks.

    The label of a document is its perceived relevance without click noise,
    (2^y − 1)/(2^y_max − 1), which is what clicks would show after infinitely many sessions of users
    who examine everything. The lists are the displayed ones, as for clicks, each drawn as often.
    """

    def __init__(self, dataset: Dataset, lists: RankedLists) -> None:
        grades = lists.gather(dataset.require_grades())
        relevance = np.where(lists.mask, perceived_relevance(grades, dataset.max_grade, 0), 0)
        if not relevance.any():
            raise DataError("no displayed document has a grade above 0: nothing to learn from")
        super().__init__(lists, relevance, np.ones(len(lists), dtype=np.int64))


class LoggedClicks(Labelled):
    """A click log: lists drawn in proportion to their sessions, with mean clicks as labels.

    The loss is linear in clicks, so the expected gradient is that of drawing single sessions, with
    less noise: all sessions of a list speak at once. (With the normalisation by `clicks` it is not
    quite linear, and the two differ.) Where a `context` column of the log tells sessions apart, a
    list is drawn with one of its contexts, and speaks for the sessions in that. `ground` is what is
    known of the documents of each list beside their features.
    """

    def __init__(
        self,
        log: ClickLog,
        context: str | None = None,
        ground: NDArray[np.float32] | None = None,
    ) -> None:
        if not log.clicks.any():
            raise DataError(
                f"none of the {log.sessions} sessions has a click: there is nothing to learn from"
            )
        self.check(log.lists)
        list_of, contexts, group = _by_context(log, context)
        sessions = np.bincount(group, log.counts, len(list_of)).astype(np.int64)
        shares = _sums(log.clicks, log, group, len(list_of)) / np.maximum(sessions, 1)[:, None]
        read = self.read(log)
        super().__init__(
            log.lists,
            shares,
            sessions,
            list_of=list_of,
            contexts=contexts,
            ground=ground,
            examined=None
            if read is None
            else _sums(read, log, group, len(list_of)) / np.maximum(sessions, 1)[:, None],
        )

    def check(self, lists: RankedLists) -> None:
        """Refuse lists that say nothing."""
        require_comparisons(lists)

    def read(self, log: ClickLog) -> NDArray[np.bool_] | None:
        """What the sessions of each row of the log have surely read, if that is known."""
        return None


class ReadClicks(LoggedClicks):
    """Clicks of users who read from the top, and what they read: all down to the last click.

    That is known of whole lists. Of single documents nothing needs to be known beside them: whether
    each was clicked is regressed on document and position.
    """

    def check(self, lists: RankedLists) -> None:
        """Refuse gaps: a click may have been made there."""
        require_read_down(lists)

    def read(self, log: ClickLog) -> NDArray[np.bool_]:
        """Down to the last click, and everything where there is none."""
        return read_down(log)


class ValuedClicks(Labelled):
    """What the sessions of a list are worth by weighted events, in the place of their clicks.

    The label is the mean value by session, on the scale of clicks; lists are drawn as clicks are.
    """

    def __init__(
        self, log: ClickLog, weights: Mapping[str, float], context: str | None = None
    ) -> None:
        require_comparisons(log.lists)
        list_of, contexts, group = _by_context(log, context)
        sessions = np.bincount(group, log.counts, len(list_of)).astype(np.int64)
        values = values_by_row(log, weights)
        sums = np.stack([np.bincount(group, each, len(list_of)) for each in values.T], axis=1)
        labels = sums / np.maximum(sessions, 1)[:, None]
        super().__init__(log.lists, labels, sessions, list_of=list_of, contexts=contexts)


class CorrectedClicks(Labelled):
    """Labels that a correction makes of the clicks on each list, drawn as clicks are."""

    def __init__(self, log: ClickLog, labels: NDArray[np.floating]) -> None:
        require_comparisons(log.lists)
        super().__init__(log.lists, np.where(log.lists.mask, labels, 0.0), log.sessions_per_list)


class DisplayedOrder:
    """What was displayed in which order, and what was not: lists followed by other candidates.

    Displayed documents have the label 1. After them, with the label 0, come as many candidates of
    the query as a list is deep, drawn anew each time, but for those that were displayed. Each
    stands for as many that were not drawn, which its `ground` says: the log of their number.
    Candidates of a list with gaps may have stood in them: there, the order of what was logged is
    all that is known, and Plackett and Luce's model is the same among some of the documents.
    """

    def __init__(self, log: ClickLog, dataset: Dataset) -> None:
        require_comparisons(log.lists)
        self.lists, self._sessions = log.lists, log.sessions_per_list
        self._cumulative = np.cumsum(self._sessions)
        self._starts = dataset.offsets[log.lists.queries]
        self._lengths = dataset.lengths[log.lists.queries]

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Draw lists in proportion to their sessions, a quarter of `size`: each tells all ranks."""
        tickets = rng.integers(self._cumulative[-1], size=max(1, size // LISTS_FOR_ONE_ORDER))
        chosen = np.searchsorted(self._cumulative, tickets, side="right")
        return self._batch(chosen, len(chosen), rng)

    def everything(self, size: int, rng: np.random.Generator) -> Batch:
        """Every list once."""
        return self._batch(np.arange(len(self.lists)), len(self.lists), rng)

    def _batch(self, chosen: NDArray[np.integer], drawn: int, rng: np.random.Generator) -> Batch:
        shown = RankedLists(self.lists.documents[chosen], self.lists.queries[chosen])
        places = rng.random(shown.documents.shape)
        return with_others(shown, self._starts[chosen], self._lengths[chosen], places, drawn)


def with_others(
    lists: RankedLists,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    places: NDArray[np.float64],
    drawn: int,
) -> Batch:
    """The order of lists, and after them the candidates that stand at these shares of the way.

    The candidates of each list's query begin at `starts`, and there are `lengths` of them.
    """
    shown, lengths = lists.documents, lengths[:, None]
    others = starts[:, None] + (places * lengths).astype(np.int64)
    same = (others[:, :, None] == shown[:, None, :]) | lists.have_gaps[:, None, None]
    seen = same.any(axis=2)
    documents = np.hstack([shown, np.where(seen, PADDING, others)]).astype(np.int32)
    labels = np.zeros(documents.shape, dtype=np.float32)
    labels[:, : shown.shape[1]] = shown != PADDING
    ground = np.zeros(documents.shape, dtype=np.float32)
    ground[:, shown.shape[1] :] = np.log(lengths / shown.shape[1])
    return Batch(documents, labels, drawn, queries=lists.queries, ground=ground)


class EstimatedRelevance(Labelled):
    """What a click model takes for relevance, in the place of clicks.

    `relevance` has a value for every query–document pair of the log, which is the label of the pair
    wherever it is displayed. Every displayed list is drawn as often: many sessions make its labels
    sure, but the list no better an example, and a few popular ones would be learned by heart.
    """

    def __init__(self, log: ClickLog, relevance: NDArray[np.floating]) -> None:
        require_comparisons(log.lists)
        labels = log.lists.gather(relevance.astype(np.float32))
        if not labels.any():
            raise DataError("no displayed document has any relevance: nothing to learn from")
        super().__init__(log.lists, labels, (log.sessions_per_list > 0).astype(np.int64))


def _by_context(
    log: ClickLog, context: str | None
) -> tuple[NDArray[np.integer], NDArray[np.int32] | None, NDArray[np.integer]]:
    """What sessions are summed by: lists, each in one context where a column tells them.

    Gives the list and the context of every sum, and which sum each row of the log goes into. Sums
    over different contexts would mix curves, so the context is part of what is summed by.
    """
    if context is None:
        return np.arange(len(log.lists)), None, log.list_of
    column = log.column(context)
    keys, group = np.unique(
        log.list_of.astype(np.int64) * len(column.names) + column.codes, return_inverse=True
    )
    return keys // len(column.names), (keys % len(column.names)).astype(np.int32), group


def _sums(
    events: NDArray[np.bool_], log: ClickLog, group: NDArray[np.integer], groups: int
) -> NDArray[np.float64]:
    """In how many sessions of each group an event was seen, position by position."""
    columns = [np.bincount(group[on], log.counts[on], groups) for on in events.T]
    return np.stack(columns, axis=1)
