"""What every estimator of examination promises; a new one is tested by being registered."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists, swap_with_first
from dualrank.data.lists import PADDING, RankedLists, top_lists
from dualrank.errors import DataError
from dualrank.learning.estimates import LIKELIHOODS, METHODS, estimate_propensities
from dualrank.propensity.bootstrap import Evidence, log_ratio
from dualrank.propensity.estimators import ESTIMATORS, estimate
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.settings import TrainingSettings

DEPTH, QUERIES, DOCUMENTS = 6, 40, 9
SHORT = TrainingSettings(steps=40, batch_size=64)
# Training draws lists by their place in the log; everything else only counts.
COUNTING = [method for method in METHODS if method not in ("dla", *LIKELIHOODS)]


def find(method, log, data, seed=0, resamples=100):
    """The estimate, or the error that says why there is none."""
    short = replace(SHORT, seed=seed)
    found = estimate_propensities(
        log, data, methods=[method], settings=short, refits=2, resamples=resamples, seed=seed
    )
    if found.refused:
        raise DataError(found.refused[method])
    return found.found[method]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    grades = rng.choice(5, QUERIES * DOCUMENTS, p=[0.45, 0.25, 0.15, 0.10, 0.05])
    features = grades[:, None] + rng.normal(size=(len(grades), 3))
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    return Dataset.from_arrays(features, query, grades, max_grade=4)


@pytest.fixture(scope="module")
def log(data):
    """Swaps of the first result, and three more rankers: something for everybody."""
    rng = np.random.default_rng(2)
    scores = [data.grades + rng.normal(size=data.document_count) for _ in range(4)]
    ranked = [top_lists(data, each, DEPTH) for each in scores]
    lists = join_lists([swap_with_first(ranked[0]), *ranked[1:]])
    return sample_log(data, lists, PositionBasedUser(), 20_000, rng)


@pytest.fixture(scope="module", params=METHODS)
def found(request, log, data):
    return request.param, find(request.param, log, data)


def test_it_is_relative_to_the_first_position_and_says_who_made_it(found):
    method, curve = found
    assert curve.examination[0] == 1
    assert curve.depth == DEPTH
    assert (np.isfinite(curve.examination) & (curve.examination > 0)).all()
    assert curve.method == method
    assert curve.sessions == 20_000


def test_intervals_contain_the_estimate(found):
    _, curve = found
    assert curve.low[0] == curve.high[0] == 1
    assert (curve.low <= curve.examination).all()
    assert (curve.examination <= curve.high).all()
    assert (curve.low[1:] < curve.high[1:]).all()


def test_support_says_how_much_stands_behind_each_position(found, log):
    _, curve = found
    assert curve.support.shape == (DEPTH,)
    assert ((curve.support > 0) & (curve.support <= log.sessions)).all()


def test_the_curve_survives_its_file(found, tmp_path):
    _, curve = found
    curve.write(tmp_path / "p.json")
    again = type(curve).read(tmp_path / "p.json")
    np.testing.assert_array_equal(again.examination, curve.examination)
    np.testing.assert_array_equal(again.high, curve.high)


def test_the_seed_decides(found, log, data):
    method, curve = found
    same, other = find(method, log, data), find(method, log, data, seed=7)
    np.testing.assert_array_equal(same.examination, curve.examination)
    np.testing.assert_array_equal(same.high, curve.high)
    assert not np.array_equal(other.high, curve.high)
    if method in ESTIMATORS:
        np.testing.assert_array_equal(other.examination, curve.examination)


@pytest.mark.parametrize("method", COUNTING)
def test_neither_the_order_of_rows_nor_the_names_of_documents_matter(method, log, data):
    rng = np.random.default_rng(3)
    rows, lists = rng.permutation(len(log.counts)), rng.permutation(len(log.lists))
    # Queries keep their order, and in each of them documents are numbered the other way round.
    within = np.arange(data.document_count).reshape(QUERIES, DOCUMENTS)[:, ::-1].ravel()
    documents = log.lists.documents[lists]
    shown = np.where(documents == PADDING, PADDING, within[documents]).astype(np.int32)
    place = np.argsort(lists)
    changed = ClickLog(
        RankedLists(shown, log.lists.queries[lists]),
        place[log.list_of[rows]].astype(np.int32),
        log.clicks[rows],
        log.counts[rows],
    )
    features = Dataset.from_arrays(data.features[within], data.query_of_document)
    one = find(method, log, data, resamples=0)
    other = find(method, changed, features, resamples=0)
    np.testing.assert_allclose(other.examination, one.examination, rtol=1e-5)
    np.testing.assert_array_equal(other.support, one.support)


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("times", [2, 50])
def test_the_length_of_the_log_does_not_matter(method, times, log, data):
    longer = ClickLog(log.lists, log.list_of, log.clicks, log.counts * times)
    found, again = (find(method, each, data, resamples=0) for each in (log, longer))
    np.testing.assert_allclose(found.examination, again.examination, rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_log_that_cannot_tell_is_refused_in_a_sentence(method, log, data):
    for hidden in (slice(None), slice(0, 1)):
        clicks = log.clicks.copy()
        clicks[:, hidden] = False
        silent = ClickLog(log.lists, log.list_of, clicks, log.counts)
        if method == "dla" and hidden != slice(None):
            continue  # it learns relevance from clicks at any position
        with pytest.raises(DataError) as caught:
            find(method, silent, data)
        assert "\n" not in str(caught.value)
    one = RankedLists(log.lists.documents[:, :1], log.lists.queries)
    with pytest.raises(DataError, match="one position only"):
        find(method, ClickLog(one, log.list_of, log.clicks[:, :1], log.counts), data)
    with pytest.raises(DataError, match="no session"):
        find(method, log.take_rows(np.array([], dtype=int)), data)


@st.composite
def logs(draw):
    """A few lists of any lengths over some documents, a few sessions, any clicks."""
    depth = draw(st.integers(2, 4))
    count = draw(st.integers(1, 5))
    rows = []
    for _ in range(count):
        length = draw(st.integers(1, depth))
        rows.append(draw(st.permutations(range(6)))[:length] + [PADDING] * (depth - length))
    lists = RankedLists(np.array(rows, dtype=np.int32), np.zeros(count, dtype=np.int32))
    sessions = draw(st.integers(1, 12))
    list_of = np.array([draw(st.integers(0, count - 1)) for _ in range(sessions)])
    clicks = np.array([[draw(st.booleans()) for _ in range(depth)] for _ in range(sessions)])
    counts = np.array([draw(st.sampled_from([1, 3, 100_000])) for _ in range(sessions)])
    return ClickLog.from_clicks(lists, list_of, clicks & lists.mask[list_of], counts)


@pytest.mark.parametrize("method", COUNTING)
def test_any_log_gives_a_curve_without_a_nan_or_a_sentence(method):
    features = np.random.default_rng(0).normal(size=(6, 2))
    data = Dataset.from_arrays(features, np.zeros(6, dtype=int))

    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
    )
    @given(logs())
    def check(log):
        try:
            curve = find(method, log, data, resamples=20)
        except DataError:
            return
        assert (np.isfinite(curve.examination) & (curve.examination > 0)).all()
        if curve.low is not None:
            assert (curve.low <= curve.examination).all()
            assert (curve.examination <= curve.high).all()

    check()


def first_click(grouped: GroupedClicks) -> Evidence:
    """An estimator from outside the package."""
    clicks = grouped.sum_by_group(grouped.clicks)
    sums = np.stack([clicks, np.ones_like(clicks)], axis=1)
    return Evidence("first-click", sums, log_ratio, grouped.impressions, grouped.unclicked)


def test_a_function_of_ones_own_goes_where_a_name_does(log):
    assert estimate(log, first_click).method == "first-click"
    assert list(estimate_propensities(log, methods=[first_click]).found) == ["first_click"]
