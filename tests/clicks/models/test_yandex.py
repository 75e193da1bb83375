"""The models on real clicks, in the order that the literature has them in."""

import pytest

from dualrank.clicks.models.comparison import compare_models


@pytest.fixture(scope="module")
def scores(yandex):
    return {score.model: score for score in compare_models(yandex["train"], yandex["test"])}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("ubm", "pbm"),
        ("dbn", "pbm"),
        ("ccm", "pbm"),
        ("pbm", "document-ctr"),
        ("pbm", "rank-ctr"),
        ("rank-ctr", "random-ctr"),
        ("dcm-em", "dcm"),
        ("sdbn-em", "sdbn"),
        ("pbm-trust", "pbm"),
    ],
)
def test_the_better_model_predicts_held_out_clicks_better(scores, better, worse):
    assert scores[better].log_likelihood > scores[worse].log_likelihood
    assert scores[better].perplexity_given_clicks < scores[worse].perplexity_given_clicks


def test_before_the_session_begins_all_that_know_documents_are_close(scores):
    """The position-based model is fitted to just these marginal clicks, so it is hard to beat."""
    for name in ("ubm", "dbn", "ccm"):
        assert abs(scores[name].perplexity - scores["pbm"].perplexity) < 0.005
        assert scores[name].perplexity < scores["rank-ctr"].perplexity - 0.04


def test_everything_converges(scores):
    assert all(score.converged for score in scores.values())
