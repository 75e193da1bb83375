"""Segments as a log over features: what is read, what is left out, what is held out."""

import numpy as np
import pyarrow as pa
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.segments import Segments
from dualrank.online.learner.round_clicks import HeldOutQueries, pooled, query_numbers, read_round

from .small_site import DEPTH, Events, feature_rows, make_data, sessions
from .stores import clicked, collector_of, record, rows_of, shown


@pytest.fixture
def data():
    return make_data()


@pytest.fixture
def events(tmp_path):
    return Events(tmp_path / "events")


def some(data, count=300, seed=0, **more):
    rng = np.random.default_rng(seed)
    return sessions(data, data.features[:, 0], count, rng, **more)


def test_held_out_queries_stay_held_out_in_whatever_company():
    ids = np.arange(4_000).astype(str)
    held = HeldOutQueries(0.1)
    assert 0.08 < held(ids).mean() < 0.12
    assert (held(ids[::-1])[::-1] == held(ids)).all()
    assert (HeldOutQueries(0.2)(ids) >= held(ids)).all()
    assert len(np.unique(query_numbers(ids))) == 4_000


def test_segments_are_read_together_over_the_table(data, events):
    for seed in (1, 2):
        events.add(some(data, seed=seed))
    found = read_round(events, [1, 2], data)
    assert found.log.sessions == found.sessions == 600
    assert found.log.clicks_per_list.sum() == found.clicks
    assert found.latest > 1e9
    assert found.suspicions == ()
    held = HeldOutQueries(0.2)
    apart = [found.part(held, held=each) for each in (True, False)]
    assert sum(each.sessions for each in apart) == 600
    queries = [set(each.lists.queries.tolist()) for each in apart]
    assert not queries[0] & queries[1]


def test_features_that_requests_brought_are_the_latest(data, events):
    changed = data.features.copy()
    changed[:, 3] += 1
    events.add(some(data), feature_rows(data))
    events.add(some(data, seed=2), feature_rows(data, changed))
    found = read_round(events, [1, 2])
    row = {pair: i for i, pair in enumerate(found.dataset.pairs())}
    ours = data.pairs()
    rows = [row[pair] for pair in ours]
    assert np.allclose(found.dataset.features[rows], changed)
    assert found.log.sessions == 600


def test_features_that_requests_brought_come_before_those_of_the_table(data, events):
    brought = data.take(np.arange(0, len(data), 2))
    features = brought.features + 1
    table = data.take(np.arange(len(data) - 60))
    events.add(some(data, 2_000), feature_rows(brought, features))
    found = read_round(events, [1], table)
    known = dict(zip(table.pairs(), table.features, strict=True))
    known |= dict(zip(brought.pairs(), features, strict=True))
    pairs = found.dataset.pairs()
    assert {each for each in brought.pairs() if each not in set(table.pairs())} <= set(pairs)
    assert np.allclose(found.dataset.features, [known[each] for each in pairs])
    both = read_round(events, [1], data)
    assert both.log.sessions == 2_000
    assert both.suspicions == ()
    other = Dataset.from_arrays(np.ones((2, 3)), ["0", "0"], doc_ids=["d0", "d1"])
    with pytest.raises(DataError, match="documents with 3, 4 features; expected as many"):
        read_round(events, [1], other)


def test_features_far_outside_of_what_the_model_knows_leave_their_sessions_out(data, events):
    features = data.features.copy()
    shown = top_lists(data, data.features[:, 0], DEPTH).documents
    features[shown[0, 0]] = 1e6
    events.add(some(data, 2_000), feature_rows(data, features))
    scaler = Scaler.fit(data.features)
    found = read_round(events, [1], scaler=scaler)
    assert [each.kind for each in found.suspicions] == ["feature"]
    assert found.suspicions[0].said.endswith(
        "sessions show documents with features far outside of what the model was trained on: left "
        "out of learning"
    )
    assert 0 < found.log.sessions < 2_000
    assert data.query_ids[0] not in found.dataset.query_ids[found.log.lists.queries]
    rare = features.copy()
    rare[shown[0, 0]] = 100
    events.add(some(data), feature_rows(data, rare))
    assert read_round(events, [2], scaler=scaler).suspicions == ()


def test_without_features_nothing_is_learned_and_that_is_said(data, events):
    events.add(some(data))
    found = read_round(events, [1])
    assert found.log is None
    assert found.suspicions[0].kind == "feature"
    assert "no table of them was given (--features)" in found.suspicions[0].said


def test_missing_features_and_unknown_documents_leave_their_sessions_out(data, events):
    features = data.features.copy()
    features[0, 2] = np.nan
    rows = feature_rows(data, features)
    events.add(some(data, 2_000), rows.slice(0, rows.num_rows - 1))
    found = read_round(events, [1])
    kinds = {each.kind for each in found.suspicions}
    said = " ".join(each.said for each in found.suspicions)
    assert kinds == {"feature"}
    assert "document without features" in said
    assert "show documents with missing features: left out of learning" in said
    assert 0 < found.log.sessions < 2_000
    assert read_round(events, [1], takes_missing=True).log.sessions > found.log.sessions


def test_a_feature_that_has_gone_leaves_the_round_out(data, events):
    features = data.features.copy()
    features[:, 1] = 0
    features[:, 3] = np.nan
    events.add(some(data), feature_rows(data, features))
    found = read_round(events, [1], varies=np.array([0, 1, 2]))
    assert found.log is None
    assert found.suspicions[-1].said == (
        f"feature 2 is the same for all {data.document_count} documents: the round is left out of "
        "learning"
    )
    assert "features 2, 4 are the same" in read_round(events, [1]).suspicions[-1].said


def test_a_round_of_nothing_but_a_machine_is_empty(data, events):
    table = some(data, 50, client=["bot"] * 50)
    everything = pa.array([True] * table.num_rows)
    table = table.set_column(table.column_names.index("clicked"), "clicked", everything)
    events.add(table)
    found = read_round(events, [1], data)
    assert found.log is None
    assert found.sessions == 50


def test_a_machine_is_told_by_the_client_that_the_store_wrote_down(tmp_path):
    features = np.random.default_rng(0).normal(size=(4, 6, 3))
    with EventStore(tmp_path, wait=0.0) as store:
        for number in range(120):
            machine = number % 4 == 0
            client = "bot" if machine else f"u{number % 30}"
            brought = rows_of(features[number % 4])
            store.show(shown(number, 6, client=client, features=brought))
            record(store, *(clicked(number, k) for k in range(6) if machine or k == number % 6))
        assert collector_of(store).collect() == [1]
    found = read_round(Segments(tmp_path), [1])
    assert found.sessions == 120
    assert found.log.sessions == 90
    assert [(each.kind, each.said) for each in found.suspicions] == [
        ("client", "client 'bot' clicked every result in 100% of 30 sessions: left out of learning")
    ]


def test_a_torn_segment_is_one_sentence(data, events):
    number = events.add(some(data))
    path = events.clicks(number)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"000001\.parquet: not readable as a segment"):
        read_round(events, [1], data)
    events.add(some(data).drop_columns(["doc_id"]))
    with pytest.raises(DataError, match="a segment has a column doc_id; there are"):
        read_round(events, [2], data)


def test_logs_over_other_features_become_one(data, events):
    for seed in (1, 2):
        events.add(some(data, seed=seed), feature_rows(data.take(np.arange(seed, len(data)))))
    parts = [read_round(events, [n]) for n in (1, 2)]
    log, small = pooled([(each.log, each.dataset) for each in parts])
    assert log.sessions == sum(each.log.sessions for each in parts)
    together = read_round(events, [1, 2], data).log
    clicks = together.clicks_per_list.sum(axis=0)
    lost = clicks - log.clicks_per_list.sum(axis=0)
    assert (lost >= 0).all()
    names = small.ids_of_documents()[log.lists.documents]
    queries = small.query_ids[log.lists.queries]
    known = set(data.pairs())
    assert all((q, d) in known for q, row in zip(queries, names, strict=True) for d in row)
