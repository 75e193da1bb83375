"""Judgement lists: what is judged, and the files that other programs read."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dualrank as dr
from dualrank.clicks.sampling import sample_log
from dualrank.data.interventions import shuffle_lists
from dualrank.data.qrels import read_qrels
from dualrank.engines.judgement_files import format_of, write_judgements
from dualrank.errors import DataError, SettingsError
from dualrank.propensity.propensity import Propensity


@pytest.fixture
def shuffled(dataset, lists, user):
    """A log that shows every document at several positions."""
    rng = np.random.default_rng(2)
    return sample_log(dataset, shuffle_lists(lists, 4, rng), user, 30_000, rng)


def truth_of(judged, dataset):
    known = dict(zip(dataset.pairs(), dataset.grades.tolist(), strict=True))
    names = zip(
        judged.table["query_id"].to_pylist(), judged.table["doc_id"].to_pylist(), strict=True
    )
    return np.array([known[pair] for pair in names])


@pytest.mark.parametrize("by", ["clicks", "ubm", "dbn:attraction"])
def test_judgements_follow_the_true_grades(shuffled, dataset, by):
    judged = dr.judge(shuffled, by=by)
    truth, table = truth_of(judged, dataset), judged.table
    assert table.column_names == [
        "query_id", "doc_id", "relevance", "low", "high", "sessions", "grade"
    ]  # fmt: skip
    assert np.corrcoef(table["relevance"].to_numpy(), 2**truth)[0, 1] > 0.85
    assert set(table["grade"].to_pylist()) == {0, 1, 2, 3, 4}
    low, value, high = (table[name].to_numpy() for name in ("low", "relevance", "high"))
    assert (low <= value).all()
    assert (value <= high).all()
    assert low.min() >= 0
    assert high.max() <= 1


def test_documents_stand_best_first_and_their_grades_fall(shuffled):
    table = dr.judge(shuffled).table
    same = table["query_id"].to_numpy()[1:] == table["query_id"].to_numpy()[:-1]
    for name in ("relevance", "grade"):
        assert (np.diff(table[name].to_numpy())[same] <= 0).all()


def test_pairs_with_too_few_sessions_are_left_out_and_counted(shuffled):
    everything, some = dr.judge(shuffled, min_sessions=1), dr.judge(shuffled, min_sessions=500)
    assert some.left_out > 0
    assert len(some) + some.left_out == len(everything)
    assert min(some.table["sessions"].to_pylist()) >= 500
    with pytest.raises(DataError, match=r"in 1000000 sessions or more \(the most is"):
        dr.judge(shuffled, min_sessions=1_000_000)


def test_without_moving_documents_a_curve_is_asked_for(log):
    with pytest.raises(DataError, match="give propensity=, or judge by=ubm"):
        dr.judge(log)
    judged = dr.judge(log, propensity=Propensity.of([0.9**k for k in range(log.lists.depth)]))
    assert judged.propensity.method == "given"
    assert len(judged) > 0
    assert repr(judged).startswith("Judgements(")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "nonsense"}, "judged by=clicks or by a click model, not by 'nonsense'"),
        ({"by": "ubm", "propensity": Propensity.of([1.0])}, "leave out propensity="),
        ({"min_sessions": 0}, "min_sessions is 1 or more"),
        ({"grades": 1}, "from 2 to 31"),
        ({"by": "ubm:nonsense"}, "ubm has no 'nonsense'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(shuffled, options, sentence):
    with pytest.raises(SettingsError, match=sentence):
        dr.judge(shuffled, **options)


def test_every_format_holds_the_same_grades(shuffled, tmp_path):
    judged = dr.judge(shuffled)
    table = judged.table
    pairs = list(zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True))
    grades = dict(zip(pairs, table["grade"].to_pylist(), strict=True))
    judged.write(tmp_path / "j.qrels")
    assert read_qrels(tmp_path / "j.qrels") == grades
    judged.write(tmp_path / "ratings.csv", "quepid")
    with (tmp_path / "ratings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query", "docid", "rating"]
    assert {(row["query"], row["docid"]): int(row["rating"]) for row in rows} == grades
    judged.write(tmp_path / "j.json")
    body = json.loads((tmp_path / "j.json").read_text())
    assert set(body) == {"name", "description", "type", "judgmentRatings"}
    assert body["type"] == "IMPORT_JUDGMENT"
    found = {
        (each["query"], rating["docId"]): rating["rating"]
        for each in body["judgmentRatings"]
        for rating in each["ratings"]
    }
    assert found == {pair: str(grade) for pair, grade in grades.items()}
    judged.write(tmp_path / "j.parquet")
    assert pq.read_table(tmp_path / "j.parquet").equals(table)


def named(query="red dress", document="a"):
    return pa.table({"query_id": [query], "doc_id": [document], "grade": [3]})


@pytest.mark.parametrize(
    ("to", "table", "sentence"),
    [
        ("trec", named(), "white space in the query id 'red dress'"),
        ("trec", named("q", "a\tb"), "white space in the document id"),
        ("quepid", named("red\ndress"), "a line break in the query id"),
        ("opensearch", named("", "a"), "an empty query id"),
    ],
)
def test_names_that_a_format_cannot_hold_are_refused(tmp_path, to, table, sentence):
    with pytest.raises(DataError, match=sentence):
        write_judgements(table, tmp_path / "out", to, by="clicks")
    assert not list(tmp_path.iterdir())


def test_text_of_queries_is_kept_as_it_was_typed(tmp_path):
    typed = 'dress, "red" größe'
    write_judgements(named(typed), tmp_path / "r.csv", "quepid", by="clicks")
    with (tmp_path / "r.csv").open(newline="", encoding="utf-8") as file:
        assert next(csv.DictReader(file))["query"] == typed
    write_judgements(named(typed), tmp_path / "o.json", "opensearch", by="clicks")
    body = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))
    assert body["judgmentRatings"][0]["query"] == typed


def test_names_of_opensearch_lists_are_short_and_plain(tmp_path):
    path = tmp_path / ('<my> "list"' + "x" * 60 + ".json")
    write_judgements(named(), path, "opensearch", by="clicks")
    name = json.loads(path.read_text())["name"]
    assert name == ("my list" + "x" * 60)[:50]


def test_the_suffix_tells_the_format(tmp_path):
    assert format_of(tmp_path / "a.qrels", None) == "trec"
    assert format_of(tmp_path / "a.csv", "quepid") == "quepid"
    with pytest.raises(SettingsError, match=r"suffixes .qrels, .json"):
        format_of(tmp_path / "a.txt", None)
    with pytest.raises(SettingsError, match="there is no format 'xml'"):
        format_of(tmp_path / "a.txt", "xml")
