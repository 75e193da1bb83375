"""Click models of a log in shards are those of the same log in one piece."""

import errno
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.models import kept_counts, product_em
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.comparison import compare_models, hold_out, hold_out_value
from dualrank.clicks.models.counting import PairTrials
from dualrank.clicks.models.ctr import DocumentClickThrough
from dualrank.clicks.models.fitted import Fitted
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.models.registry import MODELS, click_model, load_click_model
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.log_parts import LogParts
from dualrank.errors import DataError, SettingsError

QUERIES, CANDIDATES, DEPTH = 25, 8, 6


def clicked_log(queries=QUERIES, lists=3, sessions=4_000, seed=0):
    """Users who read from the top, before lists of several lengths, on phones and at desks."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), lists)
    order = rng.permuted(np.tile(np.arange(CANDIDATES), (len(query), 1)), axis=1)[:, :DEPTH]
    shown = (order + CANDIDATES * query[:, None]).astype(np.int32)
    shown[np.arange(DEPTH) >= rng.integers(3, DEPTH + 1, len(query))[:, None]] = PADDING
    attraction = rng.beta(1, 3, queries * CANDIDATES)
    list_of = np.append(np.arange(len(query)), rng.integers(len(query), size=sessions - len(query)))
    clicks = rng.random((sessions, DEPTH)) < attraction[shown[list_of]]
    reads = np.cumprod(rng.random((sessions, DEPTH)) < np.where(clicks, 0.5, 0.9), axis=1) > 0
    clicks[:, 1:] &= reads[:, :-1]
    clicks &= shown[list_of] != PADDING
    device = Column(("phone", "desk"), rng.integers(2, size=sessions).astype(np.int32))
    log = ClickLog.from_clicks(
        RankedLists(shown, query.astype(np.int32)), list_of, clicks, columns={"device": device}
    )
    documents = np.repeat(np.arange(queries), CANDIDATES)
    return log, Dataset.from_arrays(np.zeros((len(documents), 1)), documents)


@pytest.fixture(scope="module")
def both(in_shards):
    return in_shards(*clicked_log())


@pytest.mark.parametrize(("code", "who"), [(1, "no"), (0, "every")])
def test_a_value_that_no_session_or_every_one_has_is_not_held_out(in_shards, code, who):
    log, data = clicked_log()
    codes = np.full(len(log.counts), code, dtype=np.int32)
    log = replace(log, columns={"device": Column(("phone", "desk"), codes)})
    for each in in_shards(log, data):
        with pytest.raises(DataError, match=f"{who} session has 'phone' in the column 'device'"):
            hold_out_value(each, "device", "phone")


def relevance(model):
    table = model.relevance().sort_by([("query_id", "ascending"), ("doc_id", "ascending")])
    return table.select(["query_id", "doc_id", "observations"]), np.stack(
        [table[name].to_numpy() for name in ("relevance", "low", "high")]
    )


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_that_of_the_whole_log(name, on_disk, both, tmp_path, monkeypatch):
    if on_disk:
        monkeypatch.setattr(kept_counts, "MOST_BYTES", 0)
    log, sharded = both
    whole, parts = (click_model(name).fit(each) for each in (log, sharded))
    assert parts.outline.climb.converged
    assert parts.outline.climb.iterations == whole.fitted.climb.iterations
    for parameter, values in whole.fitted.shared.items():
        np.testing.assert_allclose(parts.outline.shared[parameter], values, rtol=1e-8, atol=1e-10)
    (names, expected), (found_names, found) = relevance(whole), relevance(parts)
    assert found_names.equals(names)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    assert parts.log_likelihood(sharded) == pytest.approx(whole.log_likelihood(log), rel=1e-10)
    for given in (False, True):
        one, other = (
            model.perplexity(each, given_clicks=given).per_rank
            for model, each in ((whole, log), (parts, sharded))
        )
        np.testing.assert_allclose(other, one, rtol=1e-9)
    # By names: what was fitted on one is asked about the other.
    assert parts.log_likelihood(log) == pytest.approx(whole.log_likelihood(sharded), rel=1e-10)
    for suffix in (".parquet", ".json"):
        whole.save(tmp_path / f"whole{suffix}")
        parts.save(tmp_path / f"parts{suffix}")
        kept = load_click_model(tmp_path / f"parts{suffix}")
        assert kept.log_likelihood(log) == pytest.approx(whole.log_likelihood(log), rel=1e-10)
        assert kept.fitted.sessions == log.sessions


def test_there_may_be_more_shards_than_queries(in_shards):
    log, sharded = in_shards(*clicked_log(queries=4), 12)
    whole, parts = (click_model("dbn").fit(each) for each in (log, sharded))
    np.testing.assert_allclose(relevance(parts)[1], relevance(whole)[1], rtol=1e-8)


def test_a_saved_model_has_the_same_digest_however_its_log_was_cut(in_shards, tmp_path):
    """Of one shard and of the whole log in the same order, byte by byte."""
    log, data = clicked_log(queries=9)
    _, sharded = in_shards(log, data, 3)
    model = click_model("document-ctr").fit(sharded)
    model.save(tmp_path / "parts.parquet")
    joined = click_model("document-ctr")
    joined.fitted = model.fitted
    joined.save(tmp_path / "joined.parquet")
    one, other = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("parts", "joined"))
    assert one.equals(other, check_metadata=True)


def test_sessions_are_held_out_shard_by_shard(both):
    log, sharded = both
    train, test = hold_out(LogParts.of(sharded), 0.25, 0)
    assert train.sessions + test.sessions == log.sessions
    assert abs(test.sessions - 1_000) < 5 * np.sqrt(4_000 * 0.25 * 0.75)
    with pytest.raises(DataError, match="not read as one log"):
        train.read()
    best = min(compare_models(train, test, ["random-ctr", "dbn"]), key=lambda score: score.behind)
    assert best.model == "dbn"


def test_a_comparison_by_a_column_is_that_of_the_whole_log(both):
    scores = [
        compare_models(*hold_out_value(LogParts.of(each), "device", "desk"), ["pbm", "dcm", "ubm"])
        for each in both
    ]
    for one, other in zip(*scores, strict=True):
        assert (one.model, one.iterations) == (other.model, other.iterations)
        for value in ("log_likelihood", "perplexity", "behind", "behind_error"):
            assert getattr(one, value) == pytest.approx(getattr(other, value), abs=1e-9)
        assert one.perplexity_per_rank == pytest.approx(other.perplexity_per_rank)


def test_another_log_in_shards_is_matched_by_names(in_shards):
    log, data = clicked_log()
    tomorrow, more = clicked_log(queries=40, seed=0)
    _, today = in_shards(log, data, 6)
    whole_day, day = in_shards(tomorrow, more, 6)
    _, cut_otherwise = in_shards(tomorrow, more, 3)
    model = click_model("pbm").fit(today)
    expected = click_model("pbm").fit(today)
    expected.fitted = model.fitted
    wanted = expected.log_likelihood(whole_day)
    assert model.log_likelihood(day) == pytest.approx(wanted, rel=1e-10)
    assert model.log_likelihood(cut_otherwise) == pytest.approx(wanted, rel=1e-10)


def test_a_shard_cut_off_in_the_middle_of_em_changes_nothing(in_shards, monkeypatch):
    log, sharded = in_shards(*clicked_log())
    folder = sharded.shards[2].folder
    climb = product_em.climb

    def cut_off(*arguments):
        for path in folder.glob("*.npy"):
            path.write_bytes(path.read_bytes()[:-1])
        return climb(*arguments)

    parts = LogParts.of(sharded)
    monkeypatch.setattr(product_em, "climb", cut_off)
    model = click_model("ubm").fit(parts)
    expected = click_model("ubm").fit(log).fitted.shared["examination"]
    np.testing.assert_allclose(model.outline.shared["examination"], expected, rtol=1e-8)
    with pytest.raises(DataError, match=r"00002/.*not the array that was written"):
        model.perplexity(parts)


def test_temporary_counts_are_removed_and_missing_ones_are_a_sentence(both, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = set(tmp_path.iterdir())
    kept = KeptCounts(LogParts.of(both[1]), PairTrials.of, most_bytes=0)
    assert len(kept) == 5
    (scratch,) = set(tmp_path.iterdir()) - before
    np.testing.assert_array_equal(kept[1:3][1].clicks, kept[2].clicks)
    for path in scratch.rglob("clicks.npy"):
        path.unlink()
    with pytest.raises(DataError, match="temporary files were removed or changed; run it again"):
        kept[4]
    del kept
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ((errno.ENOSPC, "No space left on device"), "No space left on device"),
        (("4096 requested and 0 written",), "4096 requested and 0 written"),  # as numpy says it
    ],
)
def test_a_full_disk_is_a_sentence(both, monkeypatch, says, reason):
    def full(*_, **__):
        raise OSError(*says)

    monkeypatch.setattr(kept_counts.np, "save", full)
    with pytest.raises(SettingsError, match=rf"written here \({reason}\); set TMPDIR to"):
        KeptCounts(LogParts.of(both[1]), PairTrials.of, most_bytes=0)


def test_a_log_of_clicks_alone_or_with_gaps_is_refused_in_shards_too(in_shards):
    log, data = clicked_log()
    shown = log.lists.mask[log.list_of]
    _, alone = in_shards(ClickLog(log.lists, log.list_of, shown, log.counts), data)
    with pytest.raises(DataError, match="every document that the log shows was clicked"):
        click_model("pbm").fit(alone)
    gaps = RankedLists(log.lists.documents.copy(), log.lists.queries)
    gaps.documents[0, 0] = PADDING
    _, partial = in_shards(ClickLog(gaps, log.list_of, log.clicks & False, log.counts), data)
    with pytest.raises(DataError, match="lists have gaps"):
        click_model("dbn").fit(partial)
    assert click_model("pbm").fit(partial).outline.climb.converged


def test_a_model_of_your_own_reads_the_whole_log(both):
    class Own(DocumentClickThrough):
        name = "own"
        _fit_parts = ClickModel._fit_parts

        def _fit(self, log):
            clicks = np.full(len(log.catalogue.doc_ids), 0.2)
            return Fitted.on(log, {"attraction": PairParameter(clicks, clicks, clicks, 0.2)})

    log, sharded = both
    assert Own().fit(sharded).log_likelihood(sharded) == pytest.approx(
        Own().fit(log).log_likelihood(log)
    )


@pytest.mark.parametrize("name", ["pbm", "dbn"])
def test_memory_is_that_of_a_shard_and_some_numbers_per_pair(name, in_shards, monkeypatch):
    monkeypatch.setattr(kept_counts, "MOST_BYTES", 0)
    log, sharded = in_shards(*clicked_log(queries=600, lists=8, sessions=12_000), 10)
    peaks = []
    for each in (log, LogParts.of(sharded)):
        model = click_model(name)
        model.em = type(model.em)(max_iterations=3)
        tracemalloc.start()
        model.fit(each)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 0.4 * peaks[0]
