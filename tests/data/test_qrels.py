"""Qrels: the grades of a TREC file on the documents of a data set."""

import numpy as np
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.qrels import account_of, read_qrels, with_qrels
from dualrank.errors import DataError
from dualrank.evaluation.evaluator import evaluate

DATA = Dataset.from_arrays(
    np.arange(5.0)[:, None], ["q1", "q1", "q1", "q2", "q3"], doc_ids=["a", "b", "c", "a", "a"]
)


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "judged.qrels"
        path.write_text(text)
        return path

    return write


def test_grades_go_to_their_documents_and_the_unjudged_get_none(write):
    path = write("q1 0 b 2\nq1 0 a -2\n\nq3\t0\ta\t1\nq1 0 gone 3\nq9 0 a 1\n")
    judged, missing = with_qrels(DATA, path)
    assert judged.query_ids.tolist() == ["q1", "q3"]
    assert judged.grades.tolist() == [0, 2, 0, 1]
    assert judged.max_grade == 3
    assert missing == 1


def test_metrics_are_those_of_the_same_grades_in_the_data(write):
    judged, _ = with_qrels(DATA, write("q1 0 a 1\nq1 0 c 2\nq2 0 a 1\nq3 0 a 0\n"))
    graded = Dataset.from_arrays(
        DATA.features, DATA.query_ids[DATA.query_of_document], [1, 0, 2, 1, 0]
    )
    scores = np.array([0.1, 0.7, 0.3, 0.0, 0.5])
    metrics = ["map", "ndcg@2", "err@3"]
    assert evaluate(scores, judged, metrics) == evaluate(scores, graded, metrics)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("q1 0 a\n", "judged.qrels:1: found 3 words; a line has 4, 'query 0 document grade'"),
        ("q1 0 a 1\nq1 0 b much\n", "judged.qrels:2: the grade is 'much'"),
        ("q1 0 a nan\n", "judged.qrels:1: the grade is 'nan'"),
        ("q1 0 a 1\nq1 0 a 2\n", "judged.qrels:2: document 'a' of query 'q1' was judged before"),
        ("\n", "there are no judgments"),
    ],
)
def test_other_files_are_refused_with_the_line(write, text, sentence):
    with pytest.raises(DataError) as caught:
        read_qrels(write(text))
    assert sentence in str(caught.value)


def test_judgments_of_other_queries_are_refused(write):
    with pytest.raises(DataError, match="judges none of the queries"):
        with_qrels(DATA, write("q7 0 a 1\n"))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_qrels(tmp_path / "none.qrels")


def test_a_grade_above_the_highest_is_refused(write):
    with pytest.raises(DataError, match="grade 3; expected at most 2"):
        with_qrels(DATA, write("q1 0 a 3\n"), max_grade=2)


def test_what_is_left_out_or_changed_is_told_in_words(write):
    path = write("q1 0 b 2\nq1 0 a -2\nq3 0 a -1\nq9 0 a 1\n")
    assert account_of(DATA, path) == [
        "1 query without judgments left out",
        "1 query of the judgments not in the data",
        "2 judgments below 0, which count as 0",
    ]
    assert account_of(DATA, write("q1 0 b 2\nq2 0 a 1\nq3 0 a 0\n")) == []
