"""Small simulated logs behind the figures of docs/concepts, each of one idea.

Nothing is trained: what is shown is what the click log itself says, or cannot say.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.clicks.browsing import Independent
from dualrank.clicks.position_based import EYE_TRACKING
from dualrank.clicks.sampling import sample_sessions
from dualrank.clicks.user import perceived_relevance
from dualrank.data import ClickLog, Dataset, RankedLists, join_lists, shuffle_lists
from dualrank.data.generator import Preset
from dualrank.evaluation.click_logit import ClickLogit
from dualrank.propensity.estimators import estimate
from dualrank.propensity.propensity import Propensity

Floats = NDArray[np.float64]

USER = dr.PositionBasedUser()
TRUTH = USER.examination(10) / USER.examination(1)
POSITIONS = np.arange(1, 11)


def judged() -> Dataset:
    """600 queries with grades from 0 to 4."""
    return dr.generate_splits(Preset(features=8, train=600, valid=1, test=1), seed=3).train


def ranked(data: Dataset, noise: float) -> RankedLists:
    """The lists of a ranker that knows the grades up to so much noise."""
    luck = np.random.default_rng(5).standard_normal(data.document_count)
    return dr.top_lists(data, data.require_grades() + noise * luck)


def clicks_by_grade(grades: tuple[int, ...]) -> list[Floats]:
    """Click-through by position of documents of each grade."""
    data = judged()
    lists = ranked(data, noise=2.0)
    log = dr.sample_log(data, lists, USER, 600_000, 1)
    shown, found = lists.gather(data.require_grades()), []
    for grade in grades:
        alike = (shown == grade) & lists.mask
        sessions = (alike * log.sessions_per_list[:, None]).sum(axis=0)
        found.append((alike * log.clicks_per_list).sum(axis=0) / np.maximum(sessions, 1))
    return found


def quality_of_sorting() -> dict[str, float]:
    """nDCG@10 of the displayed documents, sorted anew by what a thousand sessions a list say."""
    data = judged()
    lists = ranked(data, noise=2.0)
    log = dr.sample_log(data, lists, USER, 600_000, 1)
    rate = log.clicks_per_list / np.maximum(log.sessions_per_list, 1)[:, None]
    grades = lists.gather(data.require_grades())
    orders: dict[str, NDArray[np.number]] = {
        "as displayed": -np.broadcast_to(POSITIONS, rate.shape),
        "by clicks": rate,
        "by clicks over examination": rate / TRUTH,
        "by grades": grades,
    }
    found = {}
    for name, values in orders.items():
        scores = np.full(data.document_count, -1e9)
        scores[lists.documents[lists.mask]] = values[lists.mask]
        found[name] = float(dr.evaluate(scores, data, "ndcg@10")["ndcg@10"])
    return found


def two_click_throughs() -> dict[str, Propensity]:
    """Click-through over that of the first position, on a ranker's lists and on shuffled ones."""
    data = judged()
    lists = ranked(data, noise=1.0)
    mixed = shuffle_lists(lists, 5, np.random.default_rng(7))
    return {
        "lists of a ranker": estimate(
            dr.sample_log(data, lists, USER, 300_000, 1), "click-through"
        ),
        "shuffled lists": estimate(dr.sample_log(data, mixed, USER, 300_000, 2), "randomisation"),
    }


def profile_of_severity(swapped: float, severities: Floats) -> Floats:
    """How much worse each severity η explains the clicks than the best one does, in nats.

    For every η, each of the 400 documents of 40 queries is given the relevance that suits it best:
    what is left is what the clicks say of η. A share of the sessions sees the list upside down.
    """
    rng = np.random.default_rng(11)
    relevance = rng.uniform(0.05, 0.35, (40, 10))
    sessions = np.array([1_000 * (1 - swapped), 1_000 * swapped])
    curve = np.array(EYE_TRACKING)
    trials = np.broadcast_to(sessions.round().astype(int)[:, None, None], (2, 40, 10))
    clicks = rng.binomial(trials, np.stack([curve, curve[::-1]])[:, None, :] * relevance)
    grid = np.linspace(0.002, 1, 500)[:, None, None, None]
    found = []
    for eta in severities:
        seen = np.stack([curve**eta, curve[::-1] ** eta])[:, None, :] * grid
        each = clicks * np.log(seen) + (trials - clicks) * np.log1p(-np.minimum(seen, 1 - 1e-9))
        found.append(each.sum(axis=1).max(axis=0).sum())
    return np.array(found) - max(found)


class Confounded:
    """A logging ranker that sorts by what the learner sees (x), by what it does not (h), and luck.

    Relevance is e^{0.5 x + 0.5 h}/8. `luck` is how much of the order is neither.
    """

    def __init__(self, luck: float, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, 13])
        self._seen, self._hidden = rng.standard_normal((2, 3_000, 25))
        worth = 0.5 * self._seen + 0.5 * self._hidden
        self._score = worth + luck * rng.standard_normal(worth.shape)
        order = np.argsort(-self._score, axis=1)[:, :10]
        self._shown = [np.take_along_axis(a, order, axis=1) for a in (self._seen, self._hidden)]
        self._score = np.take_along_axis(self._score, order, axis=1)
        relevance = np.minimum(np.exp(0.5 * self._shown[0] + 0.5 * self._shown[1]) / 8, 1.0)
        documents = (order + 25 * np.arange(3_000)[:, None]).astype(np.int32)
        lists = RankedLists(documents, np.arange(3_000, dtype=np.int32))
        pages = Independent((relevance * np.array(EYE_TRACKING)).astype(np.float32))
        self.log: ClickLog = sample_sessions(pages, lists, 600_000, rng, None)

    def curve(self, *known: str) -> Floats:
        """Examination where clicks are explained by these (`seen`, `hidden`, `score`) and by φ."""
        values = {"seen": self._shown[0], "hidden": self._shown[1], "score": self._score}
        inputs = np.stack([values[name] for name in known], axis=2)
        clicks = self.log.clicks_per_list.astype(float)
        found = ClickLogit(inputs, clicks, np.ones(clicks.shape, bool)).fit()[len(known) :]
        return np.exp(found - found[0])


def known_of_documents(sessions: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """Relevance with its interval, of the third result of lists that were displayed so often.

    It is 0.3 in truth, and estimated by the position-based model, with 300 shuffled lists beside
    that tell examination.
    """
    rng = np.random.default_rng(17)
    count = len(sessions)
    relevance = rng.uniform(0.1, 0.5, (count + 300) * 10).astype(np.float32)
    documents = np.arange(len(relevance), dtype=np.int32).reshape(-1, 10)
    third = documents[:count, 2]
    relevance[third] = 0.3
    queries = np.arange(len(documents), dtype=np.int32)
    mixed = shuffle_lists(RankedLists(documents[count:], queries[count:]), 4, rng)
    lists = join_lists([RankedLists(documents[:count], queries[:count]), mixed])
    times = np.full(len(lists), 200)
    times[lists.queries < count] = sessions
    rows = np.repeat(np.arange(len(lists)), times)
    clicks = rng.random((len(rows), 10)) < (lists.gather(relevance) * TRUTH)[rows]
    known = dr.click_model("pbm").fit(ClickLog.from_clicks(lists, rows, clicks))
    found = known.relevance_of_pairs()
    return found.values[third], found.low[third], found.high[third]


def attraction_by_grade() -> tuple[Floats, Floats]:
    """Mean attraction of each grade by the position-based model: plain documents, and bait.

    A fifth of the documents looks relevant to three in ten users who would not find it so.
    """
    data = judged()
    bait = np.random.default_rng(19).random(data.document_count) < 0.2
    looks = perceived_relevance(data.require_grades(), data.max_grade, USER.epsilon)
    looks = np.where(bait, looks + (1 - looks) * 0.3, looks)
    lists = shuffle_lists(ranked(data, noise=1.0), 4, np.random.default_rng(23))
    pages = Independent((lists.gather(looks.astype(np.float32)) * TRUTH).astype(np.float32))
    log = sample_sessions(pages, lists, 600_000, np.random.default_rng(29), data.catalogue)
    found = dr.click_model("pbm").fit(replace(log, catalogue=None)).relevance_of_pairs().values
    shown = np.unique(lists.documents[lists.mask])
    grades = data.require_grades()
    means = [
        [found[shown][(grades[shown] == y) & (bait[shown] == b)].mean() for y in range(5)]
        for b in (False, True)
    ]
    return np.array(means[0]), np.array(means[1])
