"""What exchanging results would tell about examination, and what it would cost in clicks.

Every design shows some sessions another order and is read by an estimator that is there already:

- *first with k* (`pair-swaps`): the first result changes places with the one at k;
- *neighbours* (`harvest-adjacent`): the results at k and k + 1 change places;
- *full shuffles* (`randomisation`): all results of a list stand in random order.

A list that was shown in n of the log's sessions has click-through a_i at position i. With e the
curve, its document from i would be clicked at j with probability a_i e_j/e_i.

**An exchange of i and j.** Of T sessions that show the list as it is or exchanged, a share π shows
it exchanged. Both estimators weigh the clicks of m exchanged and T − m other sessions by
v = m(T − m)/T (Mantel and Haenszel), whose mean is π(1 − π)(T − 1): a list that is shown once tells
nothing. With ρ = e_j/e_i the sum of clicks at j has the mean v(ρ a_i + a_j), and its difference
from ρ times the sum at i has, in every list, the mean 0 (so that queries of unlike relevance add
nothing to the spread) and, by the binomial variances of the clicks in T − m and in m sessions,

    variance v (β s_0 + (1 − β) s_1),       β ≈ π + (1 − 2π)/T
    s_0 = a_j + ρ² a_i − q        s_1 = ρ a_i + ρ a_j − q        q = (ρ a_i)² + a_j²

The logarithm of the ratio of both sums then has (delta method) the variance

    Σ v (β s_0 + (1 − β) s_1) / (Σ v (ρ a_i + a_j))².

From neighbours the logarithms are added up, and so are their variances.

**A shuffle.** With g the mean of a_i/e_i over the list, M sessions have the mean M e_k g clicks at
k, and the logarithm of their ratio to those at the first position has at most the variance
(1 + e_k)/(M e_k g).

**Costs.** A session with i and j exchanged has a_i + a_j − ρ a_i − a_j/ρ = (e_i − e_j)(r_i − r_j)
clicks less, a shuffled one Σ_i a_i − g Σ_i e_i, where r_i = a_i/e_i.

**Without a curve** the worst is assumed. The variance of an exchange is greatest, for few exchanged
sessions, where ρ = a_j/a_i: where all the fall in clicks is examination. What is lost is greatest
where e_i ∝ √a_i: an exchange of i and j then costs (√a_i − √a_j)², and a shuffle of K results
Σ a_i − (Σ √a_i)²/K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.counting import ratio, tally
from dualrank.propensity.grouped_clicks import GroupedClicks

Floats = NDArray[np.float64]
Exchange = tuple[int, int]
"""Two positions, from 0, whose results change places."""


@dataclass(frozen=True, eq=False)
class LoggedLists:
    """How often each list was shown and clicked, as far down as a plan goes."""

    sessions: Floats
    clicks: Floats
    mask: NDArray[np.bool_]

    @classmethod
    def of(cls, grouped: GroupedClicks, depth: int) -> LoggedLists:
        """Sums over the groups of a log."""
        lists = grouped.lists
        sessions = tally(grouped.list_of, grouped.sessions, len(lists))
        columns = [tally(grouped.list_of, on, len(lists)) for on in grouped.clicks.T[:depth]]
        shown = sessions > 0
        clicks = np.stack(columns, axis=1)[shown]
        return cls(sessions[shown], clicks, lists.mask[shown, :depth])

    @property
    def total(self) -> float:
        """All sessions."""
        return float(self.sessions.sum())

    def click_through(self) -> Floats:
        """Click-through by position, relative to the first on the lists that show both."""
        both = self.mask & self.mask[:, :1]
        return (both * self.clicks).sum(axis=0) / (both * self.clicks[:, :1]).sum(axis=0)

    def rate(self, position: int) -> Floats:
        """The click-through of every list at a position."""
        return ratio(self.clicks[:, position], self.sessions)

    def squared_rate(self, position: int) -> Floats:
        """The square of a list's probability of a click, without bias; 0 for one session."""
        clicks, n = self.clicks[:, position], self.sessions
        return ratio(clicks * (clicks - 1), n * (n - 1))


@dataclass(frozen=True, eq=False)
class Repeats:
    """Lists by how often the log shows them, and how often they would come again.

    Of N further sessions a list takes the share f = N/n of its `times` in n logged ones. For N ≤ n
    they are a sample of the log, T ~ Binomial(times, f), and a longer log is taken as a repeated
    one:

        E[(T − 1)⁺] = f times − 1 + (1 − f)^times for f ≤ 1, and f times − 1 beyond.

    A list that the log shows once thus says nothing before the log has been doubled.
    """

    times: Floats
    of_list: NDArray[np.int64]
    total: float

    @classmethod
    def of(cls, lists: LoggedLists) -> Repeats:
        """The distinct numbers of sessions, and which list has which."""
        times, of_list = np.unique(lists.sessions, return_inverse=True)
        return cls(times, of_list, lists.total)

    def sum(self, values: Floats) -> Floats:
        """A value per list, summed by how often lists are shown."""
        return tally(self.of_list, values, len(self.times))

    def after(self, sessions: float) -> tuple[Floats, Floats]:
        """E[(T − 1)⁺], and that times the mean of 1/T, of each list in so many sessions."""
        f = sessions / self.total
        missed = max(1 - f, 0.0)
        again = np.maximum(f * self.times - 1 + missed**self.times, 0.0)
        twice = 1 - missed**self.times - self.times * min(f, 1.0) * missed ** (self.times - 1)
        # 1/T for a T that is always the same; 1/2 where a list is hardly ever shown twice.
        return again, again * ratio(np.maximum(twice, 0.0), np.maximum(twice, 0.0) + again)


@dataclass(frozen=True, eq=False)
class ExchangeEvidence:
    """What exchanges tell, as sums over the lists that are shown equally often.

    `[exchange, times]`; see the formulas above: ρ a_i + a_j, s_0 and s_1.
    """

    repeats: Repeats
    clicks: Floats
    as_it_is: Floats
    exchanged: Floats

    @classmethod
    def of(
        cls, lists: LoggedLists, exchanges: Sequence[Exchange], curve: Floats
    ) -> ExchangeEvidence:
        """What the documents of a log would tell under this curve."""
        repeats = Repeats.of(lists)
        sums = []
        for i, j in exchanges:
            rho = curve[j] / curve[i]
            both = lists.mask[:, i] & lists.mask[:, j]
            a, b = (np.where(both, lists.rate(k), 0.0) for k in (i, j))
            q = np.where(both, rho**2 * lists.squared_rate(i) + lists.squared_rate(j), 0.0)
            each = (rho * a + b, b + rho**2 * a - q, rho * (a + b) - q)
            sums.append([repeats.sum(value) for value in each])
        clicks, as_it_is, exchanged = np.moveaxis(np.array(sums), 1, 0)
        return cls(repeats, clicks, as_it_is, exchanged)

    def per_exchange(self) -> Floats:
        """The variance of each logarithm, times the exchanged sessions, where these are few."""
        weight = self.repeats.times / self.repeats.total
        return ratio(self.exchanged @ weight, (self.clicks @ weight) ** 2, np.inf)

    def variances(self, sessions: float, shares: Floats) -> Floats:
        """Of each logarithm, after so many sessions in which exchanges have these shares."""
        # Of the sessions of a list, those that show it as it is or with this very exchange.
        compared = 1 - shares.sum() + shares
        pi = shares / compared
        both = np.array([self.repeats.after(sessions * each) for each in compared])
        again, inverse = both[:, 0], both[:, 1]
        pi = pi[:, None]
        v = pi * (1 - pi) * again
        # β v, with 1/T in the mean.
        base = pi * (1 - pi) * (pi * again + (1 - 2 * pi) * inverse)
        spread = (base * self.as_it_is + (v - base) * self.exchanged).sum(axis=1)
        return ratio(spread, (v * self.clicks).sum(axis=1) ** 2, np.inf)


def shuffle_variances(lists: LoggedLists, curve: Floats) -> Floats:
    """The variance of log e_k/e_1, times the number of shuffled sessions."""
    g = _mean_relevance(lists, curve) * lists.sessions / lists.total
    reaching = np.array([g[shown & lists.mask[:, 0]].sum() for shown in lists.mask.T])
    variances = ratio(1 + curve, curve * reaching, np.inf)
    variances[0] = 0.0
    return variances


def exchange_costs(lists: LoggedLists, exchanges: Sequence[Exchange], curve: Floats) -> Floats:
    """Clicks that a session loses in the mean by each exchange, where its list is long enough."""
    costs = []
    for i, j in exchanges:
        both = lists.mask[:, i] & lists.mask[:, j]
        a, b = (lists.clicks[both, k].sum() / lists.total for k in (i, j))
        rho = curve[j] / curve[i]
        costs.append(a + b - rho * a - b / rho)
    return np.array(costs)


def shuffle_cost(lists: LoggedLists, curve: Floats) -> float:
    """Clicks that a session loses in the mean by a shuffle."""
    expected = _mean_relevance(lists, curve) * (lists.mask @ curve)
    return float((lists.clicks.sum() - expected @ lists.sessions) / lists.total)


def _mean_relevance(lists: LoggedLists, curve: Floats) -> Floats:
    """The mean over a list of click-through as it would be at the first position."""
    relevance = ratio(lists.clicks, lists.sessions[:, None] * curve)
    return ratio(relevance.sum(axis=1), lists.mask.sum(axis=1).astype(np.float64))
