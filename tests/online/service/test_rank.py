"""/rank: the order, what the user sees, and who answered."""

import numpy as np
import pytest

from dualrank.data.dataset import Dataset
from dualrank.online.service.exploration import Exploration
from dualrank.online.service.feature_table import FeatureTable


def test_the_best_stand_first_and_what_the_user_sees_is_handed_over(asking, query):
    answer = asking.post("/rank", query(0.5, 2.0, -1.0, 1.0, displayed=3, client="c"))
    assert answer.status_code == 200
    found = answer.json()
    assert [each["doc_id"] for each in found["results"]] == ["d1", "d3", "d0", "d2"]
    assert [each["position"] for each in found["results"]] == [1, 2, 3, 4]
    assert [each["score"] for each in found["results"]] == [2.0, 1.0, 0.5, -1.0]
    assert (found["version"], found["swapped"]) == (1, 0)
    (shown,) = asking.transport.shown
    assert shown.impression_id == found["impression_id"]
    assert shown.doc_ids == ("d1", "d3", "d0")
    assert (shown.query_id, shown.client, shown.version) == ("q", "c", 1)
    rows = np.frombuffer(shown.features, np.float32).reshape(3, 2)
    assert rows.tolist() == [[2, 0], [1, 0], [0.5, 0]]


def test_equal_scores_keep_the_order_of_the_request(asking, query):
    found = asking.post("/rank", query(1, 1, 2, 1)).json()
    assert [each["doc_id"] for each in found["results"]] == ["d2", "d0", "d1", "d3"]


def test_several_queries_are_answered_in_their_order(asking, query):
    body = {"queries": [query(1, 2, name="a"), query(3, name="b"), query(2, 1, 5, name="c")]}
    found = asking.post("/rank", body).json()["rankings"]
    best = [each["results"][0]["doc_id"] for each in found]
    assert best == ["d1", "d0", "d2"]
    assert [each.query_id for each in asking.transport.shown] == ["a", "b", "c"]
    assert len({each["impression_id"] for each in found}) == 3


def test_many_documents_are_scored_beside_other_requests(serving, query):
    asking = serving(max_documents=5_000)
    found = asking.post("/rank", query(*range(3_000))).json()
    assert found["results"][0]["doc_id"] == "d2999"


def test_a_document_may_be_called_as_the_list_of_queries_is(asking):
    body = {"query_id": "queries", "documents": [{"doc_id": "queries", "features": [1, 2]}]}
    assert asking.post("/rank", body).json()["results"][0]["doc_id"] == "queries"


def test_names_may_be_written_with_escapes(asking):
    body = rb'{"quer\u0069es":[{"query_id":"\u00e9\n","documents":[{"doc_id":"a"}]}]}'
    assert "control characters" in asking.post("/rank", body).json()["error"]
    body = (
        rb'{"quer\u0069es":[{"query_id":"\u00e9","documents":[{"doc_id":"a","features":[1,2]}]}]}'
    )
    assert len(asking.post("/rank", body).json()["rankings"]) == 1


def test_numbers_are_those_that_were_written(asking):
    texts = ["0.1", "-1.5e-3", "16777217", "3.4e38", "1e-50", "123456.789012345678901"]
    documents = ",".join(f'{{"doc_id":"{i}","features":[{t},0]}}' for i, t in enumerate(texts))
    found = asking.post("/rank", f'{{"query_id":"q","documents":[{documents}]}}'.encode()).json()
    scores = {each["doc_id"]: each["score"] for each in found["results"]}
    assert scores == {str(i): float(np.float32(float(t))) for i, t in enumerate(texts)}


@pytest.fixture
def table():
    return FeatureTable(
        Dataset.from_arrays([[1, 0], [3, 0], [2, 0]], ["q", "q", "p"], doc_ids=["a", "b", "a"])
    )


def test_documents_are_found_in_the_table(serving, table):
    asking = serving(table=table)
    body = {"query_id": "q", "documents": [{"doc_id": "a"}, {"doc_id": "b"}]}
    found = asking.post("/rank", body).json()
    assert [(each["doc_id"], each["score"]) for each in found["results"]] == [("b", 3), ("a", 1)]
    assert asking.transport.shown[0].features == b""


@pytest.mark.parametrize(
    ("query_id", "doc_id", "sentence"),
    [
        ("q", "z", "document 'z' of query 'q' is not in the table of features"),
        ("no", "a", "query 'no' is not in the table of features"),
    ],
)
def test_what_the_table_does_not_know_is_named(serving, table, query_id, doc_id, sentence):
    asking = serving(table=table)
    body = {"query_id": query_id, "documents": [{"doc_id": doc_id}]}
    answer = asking.post("/rank", body)
    assert answer.status_code == 422
    assert sentence in answer.json()["error"]
    assert asking.transport.shown == []


def test_exploration_exchanges_the_first_with_one_that_is_displayed(serving, query):
    asking = serving(explore=0.5)
    swapped = []
    for _ in range(60):
        found = asking.post("/rank", query(5, 4, 3, 2, 1, displayed=3)).json()
        names = [each["doc_id"] for each in found["results"]]
        expected = ["d0", "d1", "d2", "d3", "d4"]
        k = found["swapped"]
        if k:
            expected[0], expected[k - 1] = expected[k - 1], expected[0]
        assert names == expected
        assert asking.transport.shown[-1].swapped == k
        assert asking.transport.shown[-1].doc_ids == tuple(expected[:3])
        swapped.append(k)
    assert set(swapped) == {0, 2, 3}


def test_nothing_is_exchanged_unless_asked_for():
    assert {Exploration(0.0).position(10) for _ in range(100)} == {0}
    assert {Exploration(1.0).position(1) for _ in range(10)} == {0}


def test_servers_do_not_exchange_alike_unless_a_seed_says_so():
    def drawn(seed=None):
        exploration = Exploration(0.5, seed)
        return [exploration.position(10) for _ in range(200)]

    assert drawn() != drawn()
    assert drawn(3) == drawn(3)


def test_exchanged_lists_measure_examination(serving, query):
    """What exploration shows is what `pair-swaps` reads: the truth comes out."""
    from dualrank.data.click_log import ClickLog
    from dualrank.data.lists import RankedLists
    from dualrank.propensity.grouped_clicks import GroupedClicks
    from dualrank.propensity.pair_swaps import pair_swaps

    truth = np.array([1.0, 0.5, 0.25])
    rng = np.random.default_rng(0)
    exploration = Exploration(0.5, seed=1)
    shown, clicks = [], []
    for _ in range(12_000):
        order = np.arange(3)
        k = exploration.position(3)
        if k:
            order[[0, k - 1]] = order[[k - 1, 0]]
        shown.append(order)
        clicks.append(rng.random(3) < truth * np.array([0.6, 0.5, 0.4])[order])
    found, row = np.unique(np.array(shown), axis=0, return_inverse=True)
    pattern, count = np.unique(np.column_stack([row, np.array(clicks)]), axis=0, return_counts=True)
    lists = RankedLists(found.astype(np.int32), np.zeros(len(found), np.int32))
    log = ClickLog(lists, pattern[:, 0].astype(np.int64), pattern[:, 1:].astype(bool), count)
    evidence = pair_swaps(GroupedClicks.of(log))
    curve = np.exp(evidence.log_curve(evidence.statistics.sum(axis=0)))
    assert curve == pytest.approx(truth, rel=0.15)
