"""Rankers that learn from the relevance that a click model extracts."""

import numpy as np
import pytest

from dualrank.clicks.models.registry import click_model
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import make_user
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import DataError, SettingsError
from dualrank.evaluation.evaluator import evaluate
from dualrank.learning.extracted_relevance import extract_relevance, scaled_to_clicks
from dualrank.learning.feedback import EstimatedRelevance
from dualrank.learning.fit import fit
from dualrank.learning.plan import Plan
from dualrank.learning.validation import OnHeldOutClicks
from dualrank.rankers.network import Linear
from dualrank.rankers.ranker import Ranker
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings

SHORT = TrainingSettings(steps=150, batch_size=128)


def displayed(relevance, log):
    """The relevance that all sessions displayed."""
    return (log.sessions_per_list[:, None] * log.lists.gather(relevance)).sum()


def plan(name, min_sessions):
    return Plan("click-model", click_model=name, min_sessions=min_sessions)


def test_lists_with_few_sessions_are_left_out(log):
    per_list = log.sessions_per_list
    limit = int(np.median(per_list))
    kept, relevance = extract_relevance(log, plan("dbn", limit))
    assert len(kept.lists) == (per_list >= limit).sum()
    gone = np.setdiff1d(log.lists.documents[log.lists.mask], kept.lists.documents)
    assert (relevance[gone] == 0).all()
    assert (relevance[kept.lists.documents[kept.lists.mask]] > 0).all()


def test_labels_are_the_relevance_of_the_model_on_the_scale_of_clicks(log):
    kept, relevance = extract_relevance(log, plan("ubm", 1))
    found = click_model("ubm").fit(log).relevance_of_pairs().values
    expected = found * log.clicks_per_list.sum() / displayed(found, log)
    batch = EstimatedRelevance(kept, relevance).draw(64, np.random.default_rng(0))
    assert batch.drawn == 64
    for documents, labels in zip(batch.documents, batch.labels, strict=True):
        shown = documents >= 0
        np.testing.assert_allclose(labels[shown], expected[documents[shown]], rtol=1e-5)
        assert (labels[~shown] == 0).all()


def test_a_session_has_as_much_scaled_relevance_as_clicks(log):
    for name in ("ubm", "dbn"):
        kept, relevance = extract_relevance(log, plan(name, 1))
        clicks = kept.clicks_per_list.sum()
        assert displayed(relevance, kept) == pytest.approx(clicks, rel=1e-4)
        smaller = scaled_to_clicks(relevance / 7, kept)
        np.testing.assert_allclose(smaller, relevance, rtol=1e-4)
    nothing = np.zeros_like(relevance)
    assert (scaled_to_clicks(nothing, kept) == 0).all()


def test_lists_are_drawn_as_often_as_they_were_displayed(log):
    feedback = EstimatedRelevance(log, np.ones(10_000, dtype=np.float32))
    batch = feedback.draw(60_000, np.random.default_rng(0))
    first = np.bincount(batch.documents[:, 0], minlength=log.lists.documents.max() + 1)
    share = log.sessions_per_list / log.sessions
    error = np.sqrt(60_000 * share * (1 - share))
    assert (np.abs(first[log.lists.documents[:, 0]] - 60_000 * share) < 4.8 * error).all()


@pytest.fixture(scope="module")
def bayesian_world():
    """Users who leave when they are satisfied, on the lists of a ranker that knows half."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1_500, 4)).astype(np.float32)
    utility = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=len(X))
    grades = np.digitize(utility, [-0.3, 0.5, 1.2, 1.8])
    data = Dataset.from_arrays(X, np.repeat(np.arange(150), 10), grades, max_grade=4)
    lists = top_lists(data, X[:, 0] + 0.3 * X[:, 2], 8)
    return data, sample_log(data, lists, make_user("dbn"), 50_000, 0)


@pytest.mark.parametrize("name", ["dbn", "ubm"])
def test_extracted_relevance_teaches_more_than_clicks_do(bayesian_world, name):
    data, log = bayesian_world
    value = {}
    for method, options in (("naive", {}), ("click-model", {"click_model": name})):
        model = fit(log, data, method=method, ranker=Linear(), settings=SHORT, **options)
        value[method] = evaluate(model.predict(data), data, ["ndcg@10"])["ndcg@10"]
    assert value["click-model"] > value["naive"] + 0.005


def test_the_model_says_what_it_was_trained_on(bayesian_world):
    data, log = bayesian_world
    few = TrainingSettings(steps=5)
    model = fit(log, data, method="click-model", ranker=Linear(), settings=few)
    assert model.training["click_model"] == "dbn"
    assert model.training["min_sessions"] == 10
    assert model.propensity is None


def test_held_out_lists_are_valued_by_their_relevance(dataset, log):
    class Perfect:
        by_list, predict_lists = False, Ranker.predict_lists

        def __init__(self, scores):
            self.scores = scores

        def predict(self, features, offsets=None):
            return self.scores[features[:, 0].astype(int)]

    number = np.arange(dataset.document_count, dtype=np.float32)[:, None]
    _, relevance = extract_relevance(log, plan("pbm", 1))
    relevance = np.pad(relevance, (0, dataset.document_count - len(relevance)))
    check = OnHeldOutClicks(number, log, lambda: None, labels=log.lists.gather(relevance))
    best, worst = (check.value(check.measure(Perfect(sign * relevance))) for sign in (1, -1))
    assert best > worst


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"method": "dla", "click_model": "dbn"},
            "method dla takes no click model; click-model does",
        ),
        (
            {"method": "naive", "min_sessions": 3},
            "method naive takes no min_sessions; click-model does",
        ),
        ({"method": "click-model", "click_model": "psychic"}, "unknown click model 'psychic'"),
        ({"method": "click-model", "min_sessions": 0}, "min_sessions is at least 1, not 0"),
    ],
)
def test_what_does_not_go_together_is_refused(dataset, log, options, sentence):
    with pytest.raises(SettingsError, match=sentence):
        fit(log, dataset, **options)


def test_a_ranking_svm_learns_from_extracted_relevance_too(bayesian_world):
    data, log = bayesian_world
    model = fit(log, data, method="click-model", ranker=RankingSVM(C=10.0))
    naive = fit(log, data, method="naive", ranker=RankingSVM(C=10.0))
    ours, theirs = (evaluate(m.predict(data), data, ["ndcg@10"])["ndcg@10"] for m in (model, naive))
    assert ours > theirs


def test_a_log_of_rare_lists_has_nothing_to_extract(dataset, log):
    most = log.sessions_per_list.max()
    with pytest.raises(
        DataError, match=f"displayed in 100000 sessions or more .the most is {most}"
    ):
        fit(log, dataset, method="click-model", min_sessions=100_000)
