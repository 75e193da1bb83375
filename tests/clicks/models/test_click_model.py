"""The interface of all models: names, files, other logs, samples."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.models.comparison import compare_models, hold_out
from dualrank.clicks.models.registry import click_model, load_click_model
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.errors import DataError, SettingsError

TRUTH_OF = {"dcm-em": "dcm", "sdbn-em": "sdbn"}
CATALOGUE = Catalogue(
    np.array(["q0", "q1"]), np.array([f"d{i}" for i in range(8)]), np.repeat([0, 1], 4)
)


@pytest.fixture(scope="module")
def log(known_model, rotated_lists):
    return known_model("dbn", 8).sample(rotated_lists(2), 3_000, 0, catalogue=CATALOGUE)


def test_without_names_pairs_are_numbered(known_model, rotated_lists):
    log = known_model("pbm", 8).sample(rotated_lists(2), 500, 0)
    assert click_model("pbm").fit(log).relevance()["document"].to_pylist() == list(range(8))


def test_relevance_of_the_bayesian_network_needs_both(log):
    model = click_model("dbn").fit(log)
    attraction, satisfaction = (model.fitted.pairs[n] for n in ("attraction", "satisfaction"))
    relevance = model.relevance_of_pairs()
    np.testing.assert_allclose(relevance.values, attraction.values * satisfaction.values)
    assert (relevance.high <= np.maximum(attraction.high, 1e-9) * 1.0 + 1e-9).all()


def test_a_model_without_names_keeps_its_numbers(known_model, rotated_lists, tmp_path):
    log = known_model("ubm", 8).sample(rotated_lists(2), 500, 0)
    model = click_model("ubm").fit(log)
    model.save(tmp_path / "ubm.parquet")
    again = load_click_model(tmp_path / "ubm.parquet")
    np.testing.assert_array_equal(
        again.click_probabilities(log.lists), model.click_probabilities(log.lists)
    )


def test_unseen_documents_get_the_prior(log):
    model = click_model("pbm").fit(log)
    lists = RankedLists(np.array([[0, 1, 2, 3]], dtype=np.int32), np.array([0], dtype=np.int32))
    others = Catalogue(np.array(["q9"]), np.array(["d0", "d1", "d2", "d3"]), np.zeros(4, int))
    prior = model.fitted.pairs["attraction"].unseen
    found = model.click_probabilities(lists, catalogue=others)
    np.testing.assert_allclose(found[0], prior * model.fitted.shared["examination"])
    assert prior == pytest.approx(log.clicks_per_list.sum() / (4 * log.sessions))


def test_perplexity_is_two_for_a_coin_and_one_for_certainty(rotated_lists):
    lists = rotated_lists(1)
    coin = np.array([[True] * 4, [False] * 4])
    log = ClickLog.from_clicks(lists, np.zeros(2, int), coin)
    assert click_model("random-ctr").fit(log).perplexity(log).overall == pytest.approx(2)
    sure = ClickLog.from_clicks(lists, np.zeros(1, int), np.array([[True, False, True, False]]))
    certain = click_model("rank-ctr").fit(sure)
    certain.fitted.shared["rate"][:] = [1, 0, 1, 0]
    assert certain.perplexity(sure).overall == pytest.approx(1, abs=1e-5)


def test_the_true_model_wins_the_comparison(log):
    """The log is that of a Bayesian network; nothing else should predict its next clicks better."""
    scores = compare_models(*hold_out(log, 0.3, seed=0))
    assert max(scores, key=lambda s: s.log_likelihood).model in ("dbn", "ccm")
    by_name = {score.model: score for score in scores}
    assert by_name["dbn"].log_likelihood > by_name["pbm"].log_likelihood
    assert by_name["pbm"].log_likelihood > by_name["random-ctr"].log_likelihood


def test_held_out_sessions_and_the_rest_make_the_log(log):
    train, test = hold_out(log, 0.25, seed=1)
    assert train.sessions + test.sessions == log.sessions
    assert abs(test.sessions - 750) < 5 * np.sqrt(3_000 * 0.25 * 0.75)
    clicks = train.read().clicks_per_list + test.read().clicks_per_list
    np.testing.assert_array_equal(clicks, log.clicks_per_list)
    assert hold_out(log, 0.25, seed=1)[1].sessions == test.sessions


def test_bad_shares_are_refused(log, rotated_lists):
    with pytest.raises(SettingsError, match="between 0 and 1, not 1"):
        hold_out(log, 1.0, seed=0)
    one = ClickLog.from_clicks(rotated_lists(1), np.zeros(1, int), np.zeros((1, 4), bool))
    with pytest.raises(DataError, match="1 sessions are too few to hold some out"):
        hold_out(one, 0.5, seed=0)


def test_files_that_are_no_click_models_are_refused(log, tmp_path):
    model = click_model("pbm").fit(log)
    with pytest.raises(SettingsError, match=r"written as \.parquet or \.json"):
        model.save(tmp_path / "model.pkl")
    with pytest.raises(DataError, match="cannot be read"):
        load_click_model(tmp_path / "nothing.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("text")
    (tmp_path / "other.json").write_text("[]")
    for name in ("other.parquet", "text.parquet", "other.json"):
        with pytest.raises(DataError, match="not a click model"):
            load_click_model(tmp_path / name)
    model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    del content["digest"]
    for key, value, sentence in (
        ("version", 99, "a click model of version 99; known is 1"),
        ("model", "psychic", "unknown click model 'psychic'"),
        ("depth", None, "depth is None, which is no number"),
    ):
        (tmp_path / "bad.json").write_text(json.dumps({**content, key: value}))
        with pytest.raises(DataError, match=sentence):
            load_click_model(tmp_path / "bad.json")
