"""What swaps tell and cost, by formula and by simulated users."""

import numpy as np
import pytest

from dualrank.data.lists import RankedLists
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.harvesting import harvest
from dualrank.propensity.pair_swaps import pair_swaps
from dualrank.propensity.randomisation import shuffled
from dualrank.propensity.swap_designs import (
    ExchangeEvidence,
    LoggedLists,
    Repeats,
    exchange_costs,
    shuffle_cost,
    shuffle_variances,
)

CURVE = np.array([1.0, 0.7, 0.4, 0.25])
FIRST = [(0, 1), (0, 2), (0, 3)]
NEIGHBOURS = [(0, 1), (1, 2), (2, 3)]
TIMES = 600
"""A standard deviation over so many experiments is off by 3% in one standard error."""


class Pages:
    """Lists of four documents whose relevance falls, asked unequally often."""

    def __init__(self, queries, seed=0):
        self.rng = np.random.default_rng(seed)
        falling = np.array([0.5, 0.4, 0.3, 0.25])
        self.relevance = self.rng.uniform(0.4, 1.6, (queries, 4)) * falling
        self.rate = self.rng.uniform(0.5, 2.0, queries) / queries
        self.rate /= self.rate.sum()

    @property
    def chances(self):
        return CURVE * self.relevance

    def logged(self, sessions):
        """A log without chance: as many sessions and clicks as are expected."""
        n = sessions * self.rate
        return LoggedLists(n, n[:, None] * self.chances, np.ones(self.chances.shape, bool))

    def experiment(self, sessions, exchanges, shares):
        """What users click on lists as they are and exchanged, one query a group."""
        queries = len(self.rate)
        orders = [np.arange(4)] * (1 + len(exchanges))
        for row, (i, j) in enumerate(exchanges, start=1):
            orders[row] = np.arange(4)
            orders[row][[i, j]] = j, i
        names = np.arange(4 * queries).reshape(queries, 4)
        documents = np.concatenate([names[:, order] for order in orders]).astype(np.int32)
        relevance = np.concatenate([self.relevance[:, order] for order in orders])
        weight = np.concatenate([[1 - sum(shares)], shares])
        n = self.rng.multinomial(sessions, np.outer(weight, self.rate).ravel())
        clicks = self.rng.binomial(n[:, None], CURVE * relevance)
        query = np.tile(np.arange(queries), len(orders))
        shown = np.flatnonzero(n)
        return GroupedClicks(
            RankedLists(documents, query.astype(np.int32)), shown, query[shown], n[shown],
            clicks[shown], queries, "queries",
        )  # fmt: skip

    def shuffles(self, sessions):
        query = self.rng.choice(len(self.rate), sessions, p=self.rate)
        relevance = self.rng.permuted(self.relevance[query], axis=1)
        clicks = self.rng.binomial(1, CURVE * relevance)
        lists = RankedLists(np.arange(4 * sessions, dtype=np.int32).reshape(-1, 4), query)
        return GroupedClicks(
            lists, np.arange(sessions), query, np.ones(sessions, int), clicks, len(self.rate),
            "queries",
        )  # fmt: skip


def spread(evidences):
    curves = [e.log_curve(e.statistics.sum(axis=0)[None])[0] for e in evidences]
    return np.std([curve - curve[0] for curve in curves], axis=0, ddof=1)[1:]


@pytest.mark.parametrize(
    ("exchanges", "estimator"),
    [(FIRST, pair_swaps), (NEIGHBOURS, lambda found: harvest(found, "adjacent"))],
)
def test_the_standard_error_of_exchanges_is_that_of_repeated_experiments(exchanges, estimator):
    pages, shares = Pages(12), np.array([0.02, 0.03, 0.05])
    evidence = ExchangeEvidence.of(pages.logged(1e6), exchanges, CURVE)
    predicted = evidence.variances(20_000, shares)
    if exchanges is NEIGHBOURS:
        predicted = np.cumsum(predicted)
    found = spread(estimator(pages.experiment(20_000, exchanges, shares)) for _ in range(TIMES))
    # Four standard errors of a standard deviation, 1/√(2 · 600) each.
    np.testing.assert_allclose(found, np.sqrt(predicted), rtol=0.12)


def test_lists_that_are_seldom_shown_twice_tell_less():
    """Two sessions a list, of which half are swapped: the plan comes from another such log."""
    pages, shares = Pages(3_000), np.array([0.1, 0.15, 0.25])
    n = pages.rng.multinomial(9_000, pages.rate).astype(float)
    shown = n > 0
    clicks = pages.rng.binomial(n.astype(int)[:, None], pages.chances).astype(float)
    log = LoggedLists(n[shown], clicks[shown], np.ones((shown.sum(), 4), bool))
    evidence = ExchangeEvidence.of(log, FIRST, CURVE)
    predicted = np.sqrt(evidence.variances(6_000, shares))
    found = spread(pair_swaps(pages.experiment(6_000, FIRST, shares)) for _ in range(100))
    # The spread is known to 7%, and the log, with some 600 clicks at its last position, tells 4%.
    np.testing.assert_allclose(found, predicted, rtol=0.32)
    # Were the same clicks on twelve lists, each would be shown 500 times, and tell more.
    often = ExchangeEvidence.of(Pages(12).logged(9_000), FIRST, CURVE)
    assert (predicted > 1.15 * np.sqrt(often.variances(6_000, shares))).all()


def test_the_standard_error_of_shuffles_is_that_of_repeated_experiments():
    pages = Pages(12)
    predicted = np.sqrt(shuffle_variances(pages.logged(1e6), CURVE)[1:] / 4_000)
    found = spread(shuffled(pages.shuffles(4_000)) for _ in range(TIMES))
    # The formula leaves out how often both are clicked, which it may do at the last position.
    assert found[-1] == pytest.approx(predicted[-1], rel=0.15)
    assert (found < 1.1 * predicted).all()


def test_how_often_lists_come_again_is_what_parts_of_a_log_show():
    rng = np.random.default_rng(1)
    times = rng.geometric(0.3, 5_000)
    repeats = Repeats.of(
        LoggedLists(times.astype(float), np.zeros((5_000, 2)), np.ones((5_000, 2)))
    )
    for part in (0.1, 0.5, 1.0):
        again, _ = repeats.after(part * times.sum())
        taken = rng.binomial(times, part)
        seen = np.maximum(taken - 1, 0)
        error = seen.std() * np.sqrt(5_000)
        assert abs(again @ np.bincount(repeats.of_list) - seen.sum()) <= 4 * error
    assert repeats.after(0.5)[0].max() < 1e-3


def test_costs_are_the_clicks_that_users_would_not_make():
    pages = Pages(9)
    log = pages.logged(1_000)
    before = pages.rate @ pages.chances.sum(axis=1)
    for exchange in (*FIRST, *NEIGHBOURS):
        order = np.arange(4)
        order[list(exchange)] = exchange[::-1]
        after = pages.rate @ (CURVE * pages.relevance[:, order]).sum(axis=1)
        assert exchange_costs(log, [exchange], CURVE)[0] == pytest.approx(before - after)
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(4), (4_000, 1)), axis=1)
    after = np.array([pages.rate @ (pages.relevance[:, order] @ CURVE) for order in orders])
    error = after.std() / np.sqrt(len(after))
    assert abs(shuffle_cost(log, CURVE) - (before - after.mean())) < 4 * error


def test_the_worst_curve_is_the_worst():
    """Whatever the curve: costs are at most those of √(click-through), and so for the variance."""
    pages = Pages(1)
    log = pages.logged(1e6)
    raw = log.click_through()
    np.testing.assert_allclose(raw, pages.chances[0] / pages.chances[0, 0])
    dearest = exchange_costs(log, FIRST, np.sqrt(raw))
    roots = np.sqrt(pages.chances[0])
    np.testing.assert_allclose(dearest, (roots[0] - roots[1:]) ** 2)
    shuffle = shuffle_cost(log, np.sqrt(raw))
    assert shuffle == pytest.approx(pages.chances[0].sum() - roots.sum() ** 2 / 4)
    widest = ExchangeEvidence.of(log, FIRST, raw).per_exchange()
    for eta in np.linspace(0, 2, 21):
        curve = raw**eta
        assert (exchange_costs(log, FIRST, curve) <= dearest + 1e-12).all()
        assert shuffle_cost(log, curve) <= shuffle + 1e-12
        # But for the squares, which are small where clicks are rare.
        assert (ExchangeEvidence.of(log, FIRST, curve).per_exchange() <= 1.1 * widest).all()


def test_short_lists_and_gaps_take_no_part():
    mask = np.array([[True, True, True], [True, True, False], [False, True, True]])
    log = LoggedLists(np.array([100.0, 50.0, 50.0]), mask * np.array([[30.0, 20.0, 10.0]]), mask)
    whole = LoggedLists(log.sessions[:1], log.clicks[:1], mask[:1])
    curve = np.array([1.0, 0.6, 0.3])
    np.testing.assert_allclose(log.click_through(), [1, 2 / 3, 1 / 3])
    # Half of the sessions show positions 1 and 3.
    assert exchange_costs(log, [(0, 2)], curve)[0] == pytest.approx(
        exchange_costs(whole, [(0, 2)], curve)[0] / 2
    )
    one, other = (ExchangeEvidence.of(each, [(0, 2)], curve) for each in (log, whole))
    assert one.per_exchange()[0] == pytest.approx(2 * other.per_exchange()[0])
