"""Logs that say little or nothing: finite parameters, and intervals that admit it."""

import numpy as np
import pytest

from dualrank.clicks.models.em import EM, Prior
from dualrank.clicks.models.registry import MODELS, click_model
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.errors import DataError, SettingsError


@pytest.fixture
def lists():
    return RankedLists(np.array([[0, 1, 2]], dtype=np.int32), np.array([0], dtype=np.int32))


KNOWING = [name for name in MODELS if name not in ("random-ctr", "rank-ctr")]


@pytest.mark.parametrize("name", KNOWING)
def test_one_session_leaves_relevance_open(name, lists):
    log = ClickLog.from_clicks(lists, np.array([0]), np.array([[False, True, False]]))
    table = click_model(name).fit(log).relevance()
    width = table["high"].to_numpy() - table["low"].to_numpy()
    assert (width > 0.5).all()


@pytest.mark.parametrize("name", KNOWING)
def test_more_sessions_narrow_the_interval(name, lists):
    clicks = np.array([[False, True, False], [True, False, False], [False, False, True]])
    widths = []
    for count in (1, 100, 10_000):
        log = ClickLog.from_clicks(lists, np.zeros(3, int), clicks, np.full(3, count))
        first = click_model(name).fit(log).fitted.pairs["attraction"]
        widths.append(first.high[0] - first.low[0])
    assert widths[0] > widths[1] > widths[2]


@pytest.mark.parametrize("name", ["random-ctr", "rank-ctr"])
def test_baselines_without_documents_admit_that_they_know_none(name, lists):
    log = ClickLog.from_clicks(lists, np.array([0]), np.array([[True, False, False]]))
    table = click_model(name).fit(log).relevance()
    assert set(table["low"].to_pylist()) == {0.0}
    assert set(table["high"].to_pylist()) == {1.0}


@pytest.mark.parametrize("name", ["document-ctr", "pbm", "cascade", "dcm", "ubm", "dbn"])
def test_rare_documents_are_drawn_to_what_is_usual_not_to_one_half(name):
    """A skip in one session must not make a document look better than one skipped in fifty."""
    documents = np.array([[0, 1], [2, 3]], dtype=np.int32)
    log = ClickLog.from_clicks(
        RankedLists(documents, np.array([0, 1], dtype=np.int32)),
        np.array([0, 0, 1]),
        np.array([[False, False], [True, False], [False, False]]),
        np.array([950, 50, 1]),
    )
    attraction = click_model(name).fit(log).fitted.pairs["attraction"].values
    assert attraction[2] < 0.1


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: click_model("psychic"), "unknown click model 'psychic'; known are random-ctr"),
        (lambda: click_model("pbm").relevance(), "the click model pbm has not been fitted"),
        (lambda: Prior(-1.0), "the strength of a prior is 0 or more, not -1.0"),
        (lambda: Prior(1.0, 1.0), "the mean of a prior is between 0 and 1, not 1.0"),
        (lambda: EM(0), "EM needs at least one iteration, not 0"),
        (lambda: EM(1, -1.0), "tolerance is a number of nats, 0 or more, not -1.0"),
    ],
)
def test_impossible_settings_are_refused(build, sentence):
    with pytest.raises(SettingsError) as caught:
        build()
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", MODELS)
def test_models_that_follow_users_down_the_list_refuse_gaps(name, lists):
    """Others read the same off the logged documents as if the rest had not been there."""
    gaps = RankedLists(np.array([[0, -1, 2]], dtype=np.int32), np.array([0], dtype=np.int32))
    clicks = np.array([[True, False, True], [True, False, False]])
    log = ClickLog.from_clicks(gaps, np.zeros(2, int), clicks, np.array([3, 5]))
    whole = ClickLog.from_clicks(lists, np.zeros(2, int), clicks, np.array([3, 5]))
    if name in ("random-ctr", "rank-ctr", "document-ctr", "pbm", "pbm-trust"):
        model = click_model(name).fit(log)
        assert model.fitted.observations[[0, 2]].tolist() == [8, 8]
        assert model.log_likelihood(log) > model.log_likelihood(whole)
        return
    sentence = f"the click model {name} follows users down the list, and 1 of 1 lists have gaps"
    with pytest.raises(DataError, match=sentence):
        click_model(name).fit(log)
    with pytest.raises(DataError, match=sentence):
        click_model(name).fit(whole).log_likelihood(log)
