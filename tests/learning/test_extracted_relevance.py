"""Rankers that learn from the relevance that a click model extracts."""

import numpy as np
import pytest

from dualrank.clicks.models.registry import click_model
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.users import make_user
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import DataError, SettingsError
from dualrank.evaluation.click_check import hold_out
from dualrank.evaluation.evaluator import evaluate
from dualrank.learning.extracted_relevance import extract_relevance, scaled_to_clicks
from dualrank.learning.feedback import EstimatedRelevance
from dualrank.learning.fit import fit
from dualrank.learning.plan import Plan
from dualrank.rankers.network import Linear
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


def test_every_list_is_drawn_as_often_however_often_it_was_displayed(log):
    feedback = EstimatedRelevance(log, np.ones(10_000, dtype=np.float32))
    batch = feedback.draw(60_000, np.random.default_rng(0))
    first = np.bincount(batch.documents[:, 0], minlength=log.lists.documents.max() + 1)
    share = 1 / len(log.lists)
    error = np.sqrt(60_000 * share * (1 - share))
    assert (np.abs(first[log.lists.documents[:, 0]] - 60_000 * share) < 4.8 * error).all()
    assert len(set(log.sessions_per_list)) > 1


def test_one_parameter_of_a_click_model_can_be_the_label(log):
    kept, relevance = extract_relevance(log, plan("dbn:attraction", 1))
    found = click_model("dbn").fit(kept).fitted.pairs["attraction"].values
    shown = relevance > 0
    ratio = relevance[shown] / found[: len(relevance)][shown]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    with pytest.raises(SettingsError, match="ubm has no 'satisfaction'; it has attraction"):
        extract_relevance(log, plan("ubm:satisfaction", 1))


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


@pytest.mark.parametrize("name", ["dbn", "dbn:attraction", "ubm"])
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
    assert model.training["click_model"] == "ubm"
    assert model.training["min_sessions"] == 10
    assert model.propensity is None


def test_the_best_ranker_is_kept_by_the_loss_on_held_out_lists(bayesian_world):
    data, log = bayesian_world
    settings = TrainingSettings(steps=60, batch_size=128, validate_every=20)
    options = {"method": "click-model", "ranker": Linear(), "settings": settings}
    model = fit(log, data, **options, validation=0.1)
    kept, relevance = extract_relevance(log, plan("ubm", 10))
    _, held_out = hold_out(kept, 0.1, settings.seed)
    labels, mask = held_out.lists.gather(relevance).astype(float), held_out.lists.mask
    scores = np.where(mask, held_out.lists.gather(model.predict(data)), -np.inf)
    total = loss = 0.0
    for label, score, shown in zip(labels, scores, mask, strict=True):
        chance = np.exp(score - score.max()) / np.exp(score - score.max()).sum()
        loss -= (label[shown] * np.log(chance[shown])).sum()
        total += label[shown].sum()
    assert model.training["history"]["best_value"] == pytest.approx(-loss / total, rel=1e-4)


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
