"""The points that need features: two trained rankers, joint learning and the logging ranker."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.user import perceived_relevance
from dualrank.clicks.users import CascadeUser, TrustingUser
from dualrank.data.lists import top_lists
from dualrank.diagnostics import trained_pair as module
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.joint_learning import joint_learning, supported
from dualrank.diagnostics.logging_ranker import (
    logging_ranker,
    order_by_features,
    spearman_with_order,
)
from dualrank.diagnostics.trained_pair import TrainedPair, train_pair
from dualrank.diagnostics.trust import trust
from dualrank.errors import DataError
from dualrank.evaluation.click_check import Lead
from dualrank.learning.fit import fit


def led(facts, errors):
    """The same facts, had dual learning led by so many standard errors."""
    lead = Lead(errors * 0.01, 0.01, 100, 5_000)
    facts.__dict__["trained"] = SimpleNamespace(lead=lead, tells=True, supports=lead.is_clear)
    return facts


def test_where_dual_learning_comes_to_rest_given_the_true_relevance(world):
    here = world()
    log = here.log(100_000, rankers=1)
    scores = np.log(perceived_relevance(here.data.grades, 4, 0.1)).astype(np.float32)
    facts = LogFacts(log, given=TrainedPair(scores, scores, log, 1_000.0))
    found = facts.learned
    truth = PositionBasedUser().examination(10)
    z = np.log(found.examination / (truth / truth[0]))[1:] / (
        np.log(found.high / found.low)[1:] / 3.92
    )
    assert np.abs(z).max() < 4


def test_rankers_are_compared_on_queries_that_they_have_not_seen(world, monkeypatch):
    monkeypatch.setattr(module, "STEPS", 20)
    trained_on = []

    def watched(log, *arguments, **options):
        trained_on.append(np.unique(log.lists.queries))
        return fit(log, *arguments, **options)

    monkeypatch.setattr(module, "fit", watched)
    here = world(queries=60)
    log = here.log(3_000, rankers=2)
    told = []
    pair = train_pair(log, here.data, progress=lambda *done: told.append(done))
    assert [len(seen) for seen in trained_on] == [42, 42, 42]
    held_out = np.unique(pair.held_out.lists.queries)
    assert len(held_out) == 18
    assert not np.isin(held_out, trained_on).any()
    assert pair.lead.queries <= 18
    assert pair.naive.shape == pair.dual.shape == (here.data.document_count,)
    assert told[-1] == (60, 60)
    assert sorted(told) == told


def test_too_few_queries_are_not_compared(world):
    here = world(queries=5)
    with pytest.raises(DataError, match="the log has 5 queries; rankers are compared from 10 on"):
        train_pair(here.log(500), here.data)
    point = joint_learning(LogFacts(here.log(500), here.data))
    assert point.status == "not measured"
    assert point.meaning.startswith("The log has 5 queries")


@pytest.mark.parametrize(("errors", "status"), [(3.0, "good"), (1.0, "warning"), (-4.0, "warning")])
def test_a_clear_lead_supports_joint_learning(world, errors, status):
    facts = led(world().facts(1_000), errors)
    point = joint_learning(facts)
    assert point.status == status
    assert f"{errors:+.1f} standard errors" in point.meaning
    assert supported(facts) == (status == "good")
    assert ("Do not rely on dual learning" in point.advice) == (status == "warning")


def test_where_a_click_ends_the_session_a_lead_supports_nothing(world):
    point = joint_learning(led(world().facts(60_000, user=CascadeUser()), 6.0))
    assert point.status == "warning"
    assert "a click mostly ends the session" in point.meaning
    assert "train with method stopping, or auto" in point.advice


def test_without_features_joint_learning_is_not_asked(world):
    facts = world().facts(1_000)
    assert joint_learning(facts).status == logging_ranker(facts).status == "not measured"
    assert not supported(facts)


def of_ranker(world, scores_of):
    here = world()
    lists = top_lists(here.data, scores_of(here))
    return LogFacts(here.log(2_000, lists=lists), here.data)


@pytest.mark.parametrize(("errors", "status"), [(3.0, "good"), (0.5, "warning")])
def test_a_ranker_of_the_features_is_told_by_them(world, errors, status):
    facts = led(of_ranker(world, lambda here: here.data.features @ [1.0, 2.0, -1.0]), errors)
    point = logging_ranker(facts)
    assert point.numbers["spearman"] > 0.95
    assert point.status == status


def test_a_ranker_that_looks_elsewhere_is_not_told_by_the_features(world):
    facts = of_ranker(world, lambda here: here.rng.normal(size=here.data.document_count))
    point = logging_ranker(facts)
    assert abs(point.numbers["spearman"]) < 0.1
    assert point.status == "good"


def test_few_or_short_lists_tell_nothing(world):
    here = world(queries=8)
    assert order_by_features(here.data, here.lists(1)) is None
    assert logging_ranker(LogFacts(here.log(100, rankers=1), here.data)).status == "not measured"


def test_the_correlation_is_spearmans(world):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 8))
    scores[10:] = np.round(scores[10:])
    mask = np.arange(8) < rng.integers(3, 9, 20)[:, None]
    theirs = [
        spearmanr(each[shown], -np.arange(shown.sum())).statistic
        for each, shown in zip(scores, mask, strict=True)
    ]
    np.testing.assert_allclose(spearman_with_order(scores, mask), theirs)
    gaps = np.hstack([np.zeros((20, 1), bool), mask])
    beside = np.hstack([np.full((20, 1), 9.0), scores])
    np.testing.assert_allclose(spearman_with_order(beside, gaps), theirs)


def test_ties_do_not_repeat_the_order_shown(world):
    """All documents alike but one in fifty: a stable sort would call that a perfect guess."""
    here = world()
    features = np.zeros((here.data.document_count, 1))
    features[::50] = 1.0
    lists = top_lists(here.data, here.rng.normal(size=here.data.document_count))
    assert abs(order_by_features(replace(here.data, features=features), lists)) < 0.1
    none = replace(here.data, features=np.full_like(features, 0.3))
    point = logging_ranker(led(LogFacts(here.log(500, lists=lists), none), 3.0))
    assert point.status == "not measured"
    assert "equal scores" in point.meaning


def test_a_lead_in_nothing_supports_nothing(world):
    facts = led(world().facts(1_000), 3.0)
    facts.trained.tells = facts.trained.supports = False
    point = joint_learning(facts)
    assert point.status == "warning"
    assert "better than position alone" in point.meaning


@pytest.mark.parametrize(
    ("user", "status"), [(PositionBasedUser(), "good"), (TrustingUser(), "failed")]
)
def test_trust_is_seen_by_features_where_nothing_moved(world, user, status):
    here = world(queries=900)
    log = here.log(80_000, rankers=1, user=user)
    scores = np.log(perceived_relevance(here.data.grades, 4, 0.1)).astype(np.float32)
    facts = LogFacts(log, here.data, given=TrainedPair(scores, scores, log))
    point = trust(facts)
    if status == "good":
        assert point.status == "good"
        assert "no clear sign of trust" in point.meaning
    else:
        assert point.status in ("warning", "failed")
        assert "relevant or not" in point.meaning
