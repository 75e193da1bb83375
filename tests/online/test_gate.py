"""Held-out clicks between two rankers: what a feature that went wrong must not change."""

import numpy as np
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.evaluation.click_check import ClickCheck
from dualrank.online.learner.gate import WORSE, Gate, as_normal
from dualrank.online.learner.laid_out import LaidOut
from dualrank.online.learner.round_clicks import query_numbers
from dualrank.propensity.propensity import Propensity

from .small_site import TRUTH, make_data, sessions

DATA = make_data().take(np.arange(40))


@pytest.fixture(scope="module")
def log():
    shown_by = DATA.features[:, 0] + np.random.default_rng(1).normal(size=DATA.document_count)
    return ClickLog.read(sessions(DATA, shown_by, 4_000, np.random.default_rng(0)), DATA)


@pytest.fixture(scope="module")
def gate(log):
    return Gate(log, DATA, Propensity.of(TRUTH))


@pytest.fixture(scope="module")
def good():
    return DATA.features[:, 0] + 0.7 * DATA.features[:, 1]


def spoiled(log, scores, value):
    """With the score of one displayed document far from all others."""
    scores = scores.copy()
    scores[log.lists.documents[0, 2]] = value
    return scores


@pytest.mark.parametrize("value", [1e2, 1e6, -1e6, 1e30])
def test_one_odd_document_does_not_blind_the_gate(log, gate, good, value):
    clean = gate.judge(-good, good)
    assert clean.is_worse()
    odd = gate.judge(spoiled(log, -good, -value), spoiled(log, good, value))
    assert odd.is_worse()
    assert odd.queries == clean.queries - 1
    assert odd.predicts < clean.predicts / 2
    assert odd.earns < clean.earns / 2


def test_a_ranker_that_alone_scores_a_document_far_off_answers_for_it(log, gate, good):
    bold = spoiled(log, good, 1e6)
    assert gate.judge(bold, good).queries == gate.judge(good, good).queries
    assert gate.judge(-bold, good).is_worse()


def test_where_nearly_all_scores_are_far_off_nothing_is_told(gate, good):
    far = good * np.where(np.arange(len(good)) % 3 == 0, 1e9, 1.0)
    judged = gate.judge(-far, far)
    assert not judged.can_tell
    assert "are held out; 10 are needed to compare" in judged.said("version 1")


def test_one_odd_document_leaves_the_scores_of_all_others_apart(log, good):
    numbers = query_numbers(DATA.query_ids)
    clean, odd = (LaidOut.of(log, each, numbers) for each in (good, spoiled(log, good, 1e6)))
    assert np.median(odd.scores.std(axis=1)) > 0.8 * np.median(clean.scores.std(axis=1))


def test_few_queries_refuse_an_equal_as_rarely_as_many():
    rng = np.random.default_rng(3)
    for queries in (10, 30, 300):
        found = rng.normal(size=(20_000, queries))
        errors = np.sqrt(queries) * found.mean(axis=1) / found.std(axis=1, ddof=1)
        refused = np.mean([as_normal(each, queries) < -WORSE for each in errors[errors < -WORSE]])
        # One in 740 is that far behind by luck.
        assert refused * np.mean(errors < -WORSE) < 2 / 740
    assert as_normal(1e9, 50) > 30
    assert as_normal(5.0, 1) == 0


def test_a_lead_on_few_queries_is_a_smaller_one(log, good):
    few = log.take_lists(np.flatnonzero(log.lists.queries < 12))
    judged = Gate(few, DATA).judge(-good, good)
    check = ClickCheck(few).lead(-good, good)
    assert check.in_errors < judged.predicts < 0
