"""Logs of single impressions, or of some of them: gaps are what was not shown or not logged."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.log.read_log import read_log
from dualrank.data.log.reading_report import BadLogError
from dualrank.data.log.saved import KEY, to_table, write_log
from dualrank.errors import DataError

from .conftest import long_table
from .reference import happenings

ROWS = [
    ("s1", "q1", "b", 2, 1),
    ("s2", "q2", "c", 1, 0),
    ("s2", "q2", "e", 4, 1),
    ("s3", "q1", "a", 1, 0),
    ("s3", "q1", "b", 2, 1),
    ("s4", "q1", "b", 2, 0),
]


@pytest.fixture
def partial():
    return read_log(long_table(ROWS), partial=True)


def names(log):
    """The names that stand at each position of every list, None at gaps."""
    documents = log.catalogue.doc_ids
    return sorted(
        [str(documents[row]) if row >= 0 else "" for row in rows] for rows in log.lists.documents
    )


def test_positions_keep_their_numbers(partial):
    assert names(partial) == [["", "b", "", ""], ["a", "b", "", ""], ["c", "", "", "e"]]
    assert partial.clicks_per_list.sum(axis=0).tolist() == [0, 2, 0, 1]
    assert partial.sessions == 4
    assert sorted(partial.lists.have_gaps) == [False, True, True]
    (noted,) = partial.reading.problems
    assert (noted.kind, noted.count, noted.treatment) == ("partial_list", 3, "noted")
    assert partial.reading.bad == 0


def test_without_a_word_gaps_are_refused_and_the_option_is_named():
    with pytest.raises(BadLogError) as caught:
        read_log(long_table(ROWS))
    sentence = str(caught.value)
    assert "session 's1' has positions 2; expected 1, 2, 3 … without gaps" in sentence
    assert sentence.endswith(
        "mend the log, or set partial=True if what is missing was not shown or not logged"
    )


def test_few_gaps_may_also_be_left_out():
    rows = [*ROWS[1:2], *ROWS[3:5], ("s5", "q2", "c", 1, 0), *ROWS[:1]]
    with pytest.raises(BadLogError, match=r"partial=True if .*, or raise max_bad_share to leave"):
        read_log(long_table(rows))


def test_other_faults_are_still_faults():
    rows = [*ROWS, ("s5", "q1", "a", 1, 0), ("s5", "q1", "b", 1, 0), ("s6", "q1", "a", 0, 0)]
    with pytest.raises(BadLogError) as caught:
        read_log(long_table(rows), partial=True)
    kinds = [problem.kind for problem in caught.value.reading.problems]
    assert kinds == ["zero_based", "partial_list", "same_position"]


def test_a_log_without_a_first_position_is_told_what_examination_is_relative_to():
    with pytest.raises(DataError, match="no session shows a document at position 1"):
        read_log(long_table(ROWS[:1]), partial=True)


def test_a_reduced_log_keeps_its_gaps(partial, tmp_path):
    write_log(partial, tmp_path / "log.parquet")
    again = read_log(tmp_path / "log.parquet")
    assert names(again) == names(partial)
    assert happenings(again) == happenings(partial)
    assert happenings(read_log(tmp_path / "log.parquet", partial=True)) == happenings(partial)
    table = pq.read_table(tmp_path / "log.parquet")
    assert sorted(table["places"].to_pylist()) == [[1, 2], [1, 4], [2]]
    assert json.loads(table.schema.metadata[KEY])["format"] == 2


def test_a_reduced_log_of_whole_lists_is_written_as_ever(clean, tmp_path):
    table = to_table(read_log(long_table(clean), partial=True))
    assert table.column_names == ["query_id", "doc_ids", "happened"]
    assert json.loads(table.schema.metadata[KEY])["format"] == 1


@pytest.mark.parametrize(
    "places", [[[2, 1], [1, 4], [2]], [[0, 1], [1, 4], [2]], [[1], [1, 4], [2]]]
)
def test_places_that_cannot_be_are_damage(partial, tmp_path, places):
    table = to_table(partial)
    order = np.argsort([ids[0] for ids in table["doc_ids"].to_pylist()], kind="stable")
    table = table.take(order)
    at = table.column_names.index("places")
    bent = table.set_column(at, "places", pa.array(places, table["places"].type))
    pq.write_table(bent, tmp_path / "log.parquet")
    with pytest.raises(DataError, match="damaged: not a reduced log"):
        read_log(tmp_path / "log.parquet")


def test_lists_that_begin_with_a_gap_belong_to_their_own_query():
    data = Dataset.from_arrays(
        np.arange(4.0)[:, None], ["q1", "q1", "q2", "q2"], doc_ids=["a", "b", "c", "e"]
    )
    log = read_log(long_table(ROWS), data, partial=True)
    of_documents = [data.query_of_document[rows[rows >= 0][0]] for rows in log.lists.documents]
    assert log.lists.queries.tolist() == of_documents
    assert set(log.lists.queries.tolist()) == {0, 1}
