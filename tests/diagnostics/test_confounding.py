"""Is what the logging ranker knew told from examination?"""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.diagnostics.confounding import confounding
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.trained_pair import TrainedPair

QUERIES, CANDIDATES, DEPTH = 1_500, 14, 8


@pytest.fixture(scope="module")
def asked():
    """The point for a logging ranker that knows so much beside the features."""

    def asked(hidden, imitated=True, known=False, flat=False):
        rng = np.random.default_rng(3)
        count = QUERIES * CANDIDATES
        seen, unseen = rng.normal(size=(2, count))
        spread = np.repeat(rng.uniform(0.3, 2.0, QUERIES), CANDIDATES)
        liked = spread * seen + hidden * rng.gumbel(size=count)
        features = np.stack([seen, spread], axis=1)
        data = Dataset.from_arrays(features, np.repeat(np.arange(QUERIES), CANDIDATES))
        lists = top_lists(data, liked, DEPTH)
        shown = lists.documents
        examination = PositionBasedUser().examination(DEPTH)
        relevance = np.exp(0.3 * (seen + unseen) + 0.4 * liked)
        expected = examination * np.minimum(relevance[shown] / 10, 1.0)
        clicks = rng.binomial(200, expected)
        # One row for every click, and none for the others: what counts is where clicks fall.
        rows, ranks = np.nonzero(clicks)
        patterns = np.eye(DEPTH, dtype=bool)[ranks]
        log = ClickLog.from_clicks(lists, rows, patterns, clicks[rows, ranks])
        scale = 1 / max(hidden, 0.01)
        copy = (scale * spread * seen).astype(np.float32)
        pair = TrainedPair(
            naive=seen.astype(np.float32),
            dual=(0.3 * seen + 0.4 * liked if known else seen).astype(np.float32),
            held_out=log,
            imitated=(np.zeros_like(copy) if flat else copy) if imitated else None,
        )
        return confounding(LogFacts(log, data, given=pair))

    return asked


def test_a_ranker_that_knew_more_than_features_tell_is_found(asked):
    point = asked(hidden=0.7)
    assert point.status == "warning"
    assert point.numbers["factor"] > 1.2
    assert "method grounded" in point.advice


def test_a_ranker_whose_knowledge_the_features_tell_leaves_the_curve_as_it_is(asked):
    """Joint learning has scores by which documents were placed, and the order adds nothing."""
    point = asked(hidden=0.0, known=True)
    assert point.status == "good"
    assert max(point.numbers["factor"], 1 / point.numbers["factor"]) < 1.2


def test_scores_equally_far_apart_on_all_lists_say_nothing(asked):
    point = asked(hidden=0.7, flat=True)
    assert point.status == "not measured"
    assert "equally far apart" in point.meaning


def test_without_an_imitation_nothing_is_said(asked):
    assert asked(hidden=0.7, imitated=False).status == "not measured"
