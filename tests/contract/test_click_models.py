"""What every click model promises; a new one is tested by being registered."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from dualrank.clicks.models.em import EM, Prior
from dualrank.clicks.models.registry import MODELS, click_model, load_click_model
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING, RankedLists
from dualrank.errors import DataError, SettingsError

DEPTH, QUERIES = 4, 6
ALMOST_NEVER = 1e-5
NO_PRIOR = Prior(strength=0.0)
CATALOGUE = Catalogue(
    np.array([f"q{i}" for i in range(QUERIES)]),
    np.array([f"d{i}" for i in range(QUERIES * DEPTH)]),
    np.repeat(np.arange(QUERIES), DEPTH),
)


def rotated(*, ragged=False):
    """Every query shows its documents in every rotation, so that documents connect the ranks."""
    rows, owners = [], []
    for q in range(QUERIES):
        length = DEPTH - q % 3 if ragged else DEPTH
        for shift in range(length):
            shown = np.roll(np.arange(length) + q * DEPTH, shift)
            rows.append([*shown, *[PADDING] * (DEPTH - length)])
            owners.append(q)
    return RankedLists(np.array(rows, dtype=np.int32), np.array(owners, dtype=np.int32))


@pytest.fixture(scope="module")
def log():
    """Clicks that follow no model, on lists of several lengths."""
    rng = np.random.default_rng(5)
    lists = rotated(ragged=True)
    list_of = rng.integers(len(lists), size=6_000)
    liked = rng.uniform(0.1, 0.9, QUERIES * DEPTH + 1)[lists.documents[list_of]]
    clicks = rng.random((6_000, DEPTH)) < liked * np.linspace(1.0, 0.4, DEPTH)
    clicks &= (rng.random((6_000, 1)) < 0.8) & lists.mask[list_of]
    return ClickLog.from_clicks(lists, list_of, clicks, catalogue=CATALOGUE)


@pytest.fixture(scope="module", params=MODELS)
def model(request, log):
    return click_model(request.param).fit(log)


def test_it_goes_by_its_name_and_says_who_it_is(model):
    assert MODELS[model.name] is type(model)
    assert model.title
    assert model.fitted.sessions == 6_000
    assert model.fitted.climb.converged


def test_probabilities_have_the_shape_of_the_lists_and_padding_is_never_clicked(model, log):
    for clicks in (None, np.zeros(log.lists.documents.shape, dtype=bool)):
        p = model.click_probabilities(log.lists, clicks)
        assert p.shape == log.lists.documents.shape
        assert ((p >= 0) & (p <= 1)).all()
        assert not p[~log.lists.mask].any()
        assert (p[log.lists.mask] > 0).any()
    drawn = model.sample(log.lists, 2_000)
    assert not (drawn.clicks & ~drawn.lists.mask[drawn.list_of]).any()


def test_longer_padding_changes_nothing(model, log):
    wide = np.full((len(log.lists), DEPTH + 2), PADDING, dtype=np.int32)
    wide[:, :DEPTH] = log.lists.documents
    padded = model.click_probabilities(RankedLists(wide, log.lists.queries))
    np.testing.assert_array_equal(padded[:, :DEPTH], model.click_probabilities(log.lists))
    cut = RankedLists(log.lists.documents[:, :2], log.lists.queries)
    assert model.click_probabilities(cut).shape == (len(cut), 2)
    whole = log.lists.mask.all(axis=1)
    long = RankedLists(np.hstack([log.lists.documents[whole]] * 2), log.lists.queries[whole])
    with pytest.raises(DataError, match="knows 4 ranks, and the lists show 8"):
        model.click_probabilities(long)


def test_the_seed_decides(model, log):
    one, same, other = (model.sample(log.lists, 500, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.clicks_per_list, same.clicks_per_list)
    assert not np.array_equal(one.clicks_per_list, other.clicks_per_list)


def test_samples_follow_the_probabilities(model, log):
    sessions = 40_000
    expected = model.click_probabilities(log.lists) / len(log.lists)
    error = np.sqrt(expected * (1 - expected) / sessions)
    seen = model.sample(log.lists, sessions, 1).clicks_per_list / sessions
    # Among some eighty cells, 4.8 standard errors happen once in 8,000 tests.
    assert (np.abs(seen - expected) <= 4.8 * error).all()


def test_conditional_probabilities_average_to_the_marginal_ones(model, log):
    drawn = model.sample(log.lists, 40_000, 2)
    shown = RankedLists(drawn.lists.documents[drawn.list_of], drawn.lists.queries[drawn.list_of])
    given_clicks = model.click_probabilities(shown, drawn.clicks)
    mean = drawn.counts @ given_clicks / drawn.sessions
    expected = model.click_probabilities(log.lists).mean(axis=0)
    np.testing.assert_allclose(mean, expected, atol=0.015)


def test_the_likelihood_is_that_of_the_conditional_probabilities(model, log):
    rows = RankedLists(log.lists.documents[log.list_of], log.lists.queries[log.list_of])
    p = np.clip(model.click_probabilities(rows, log.clicks), 1e-6, 1 - 1e-6)
    surprise = np.where(rows.mask, np.log(np.where(log.clicks, p, 1 - p)), 0.0)
    assert model.log_likelihood(log) == pytest.approx(log.counts @ surprise.sum(axis=1), rel=1e-9)
    per_rank = model.perplexity(log, given_clicks=True).per_rank
    sessions = (log.sessions_per_list[:, None] * log.lists.mask).sum(axis=0)
    assert -sessions @ np.log(per_rank) == pytest.approx(model.log_likelihood(log), rel=1e-9)
    assert 1 <= model.perplexity(log).overall <= 2


def test_relevance_names_every_displayed_pair(model, log):
    table = model.relevance()
    assert table.column_names == [
        "query_id", "doc_id", "relevance", "observations", "low", "high",
    ]  # fmt: skip
    displayed = (log.sessions_per_list[:, None] * log.lists.mask).sum()
    assert sum(table["observations"].to_pylist()) == displayed
    low, value, high = (table[name].to_numpy() for name in ("low", "relevance", "high"))
    assert ((low >= 0) & (low <= value) & (value <= high) & (high <= 1)).all()


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_saved_model_predicts_the_same(model, suffix, log, tmp_path):
    path = tmp_path / f"model{suffix}"
    model.save(path)
    again = load_click_model(path)
    assert again.name == model.name
    assert again.log_likelihood(log) == pytest.approx(model.log_likelihood(log), rel=1e-12)
    assert again.relevance().equals(model.relevance())


def test_rows_of_one_session_each_fit_like_their_sum(model, log):
    """The reduction of the log is exact: nothing that a model reads is lost in it."""
    each = np.repeat(np.arange(len(log.counts)), log.counts)
    ones = np.ones(len(each), dtype=np.int64)
    raw = ClickLog(log.lists, log.list_of[each], log.clicks[each], ones, catalogue=CATALOGUE)
    single = type(model)().fit(raw)
    for name, parameter in model.fitted.pairs.items():
        np.testing.assert_allclose(single.fitted.pairs[name].values, parameter.values, atol=1e-9)
    assert single.log_likelihood(raw) == pytest.approx(model.log_likelihood(log), rel=1e-9)


def test_another_log_is_matched_by_names(model, log):
    """The same sessions with documents numbered the other way round."""
    back = np.arange(QUERIES * DEPTH)[::-1]
    documents = np.where(log.lists.mask, back[log.lists.documents], PADDING).astype(np.int32)
    names = Catalogue(
        CATALOGUE.query_ids, CATALOGUE.doc_ids[back], CATALOGUE.query_of_document[back]
    )
    lists = RankedLists(documents, log.lists.queries)
    renamed = ClickLog(lists, log.list_of, log.clicks, log.counts, catalogue=names)
    assert model.log_likelihood(renamed) == pytest.approx(model.log_likelihood(log), rel=1e-12)
    refitted = type(model)().fit(renamed)
    assert refitted.log_likelihood(log) == pytest.approx(model.log_likelihood(log), rel=1e-6)


CLOSED_FORMS = {"dcm", "sdbn"}


def test_what_a_model_samples_it_finds_again(model):
    """Twice the gain in likelihood over the truth is χ², with at most a degree per parameter.

    A closed form that takes users to leave at their last click finds less than the truth has.
    """
    lists = rotated()
    drawn = model.sample(lists, 100_000, 3, catalogue=CATALOGUE)
    again = click_model(model.name, NO_PRIOR).fit(drawn)
    gain = 2 * (again.log_likelihood(drawn) - model.log_likelihood(drawn))
    parameters = sum(np.size(p.values) for p in model.fitted.pairs.values())
    parameters += sum(np.size(values) for values in model.fitted.shared.values())
    assert gain < stats.chi2.ppf(1 - ALMOST_NEVER, parameters)
    if model.name not in CLOSED_FORMS:
        assert gain > -0.1


def test_an_unfitted_model_and_an_empty_log_are_refused(model, log):
    with pytest.raises(SettingsError, match=f"the click model {model.name} has not been fitted"):
        type(model)().relevance()
    with pytest.raises(DataError, match="no sessions to fit a click model on"):
        type(model)().fit(log.take_rows(np.array([], dtype=int)))


@st.composite
def logs(draw):
    """A few lists of any lengths, a few sessions, any clicks."""
    depth = draw(st.integers(1, 5))
    count = draw(st.integers(1, 4))
    rows = []
    for _ in range(count):
        length = draw(st.integers(1, depth))
        chosen = draw(st.permutations(range(6)))[:length]
        rows.append(chosen + [PADDING] * (depth - length))
    lists = RankedLists(np.array(rows, dtype=np.int32), np.zeros(count, dtype=np.int32))
    sessions = draw(st.integers(1, 6))
    list_of = np.array([draw(st.integers(0, count - 1)) for _ in range(sessions)])
    kind = draw(st.sampled_from(["any", "none", "all"]))
    clicks = np.array([[draw(st.booleans()) for _ in range(depth)] for _ in range(sessions)])
    clicks = {"any": clicks, "none": clicks & False, "all": clicks | True}[kind]
    counts = np.array([draw(st.sampled_from([1, 2, 1_000_000])) for _ in range(sessions)])
    return ClickLog.from_clicks(lists, list_of, clicks & lists.mask[list_of], counts)


@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("name", MODELS)
def test_any_log_gives_finite_parameters(name, strength):
    @settings(max_examples=12, deadline=None, database=None, derandomize=True)
    @given(logs())
    def check(log):
        assume((log.clicks != log.lists.mask[log.list_of]).any())
        model = click_model(name, Prior(strength), EM(max_iterations=60)).fit(log)
        fitted = model.fitted
        for values in [*fitted.shared.values(), *(p.values for p in fitted.pairs.values())]:
            assert ((values >= 0) & (values <= 1)).all()
        table = model.relevance()
        low, value, high = (table[name].to_numpy() for name in ("low", "relevance", "high"))
        assert ((low >= 0) & (low <= value) & (value <= high) & (high <= 1)).all()
        assert np.isfinite(model.log_likelihood(log))
        assert np.isfinite(model.perplexity(log).overall)
        assert np.isfinite(model.click_probabilities(log.lists)).all()
        assert model.sample(log.lists, 50, 0).sessions == 50

    check()


class Coin(MODELS["random-ctr"]):
    """A model from outside the package."""

    name = "coin"
    title = "a coin"


def test_a_class_of_ones_own_goes_where_a_name_does(log, tmp_path):
    model = click_model(Coin).fit(log)
    model.save(tmp_path / "coin.json")
    with pytest.raises(DataError, match="unknown click model 'coin'"):
        load_click_model(tmp_path / "coin.json")
    assert isinstance(load_click_model(tmp_path / "coin.json", Coin), Coin)
