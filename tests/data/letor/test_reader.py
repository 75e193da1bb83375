"""LETOR text of every shape becomes the data set it describes."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.data.letor.arrays import open_arrays
from dualrank.data.letor.parser import parse_letor
from dualrank.data.letor.reader import read_letor
from dualrank.data.letor.rules import Declared
from dualrank.data.letor.source import SourceFile
from dualrank.errors import SettingsError


def read_text(tmp_path, text, **options):
    path = tmp_path / "data.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_letor(path, cache=False, **options)


def test_a_line_becomes_a_document(tmp_path):
    data = read_text(
        tmp_path,
        "2 qid:10 1:0.5 2:-1.25e1 3:7 #docid = GX008-86-4444840 inc = 1 prob = 0.086622\n"
        "0 qid:10 1:0.1 2:0 3:.5 # docid = B\n"
        "1.5 qid:q-2 1:1 2:2. 3:3\n",
    )
    assert repr(data) == "Dataset(2 queries, 3 documents, 3 features, grades 0 to 2)"
    assert (
        data.features.tolist() == np.float32([[0.5, -12.5, 7], [0.1, 0, 0.5], [1, 2, 3]]).tolist()
    )
    assert data.features.dtype == np.float32
    assert data.features.flags.c_contiguous
    assert data.grades.tolist() == [2, 0, 1.5]
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.query_ids.tolist() == ["10", "q-2"]
    assert data.doc_ids.tolist() == ["GX008-86-4444840", "B", ""]


def test_without_document_ids_there_is_no_such_array(tmp_path):
    assert read_text(tmp_path, "1 qid:1 1:1 # inc = 1 docid = A\n").doc_ids is None


def test_features_left_out_are_zero_and_wider_lines_may_come_late(tmp_path):
    lines = [f"0 qid:{i} {i + 1}:{i + 1}\n" for i in range(200)]
    data = read_text(tmp_path, "0 qid:none\n" + "".join(lines))
    assert np.array_equal(data.features, np.r_[np.zeros((1, 200)), np.diag(np.arange(1, 201))])


def test_declared_features_and_max_grade_become_those_of_the_data(tmp_path):
    data = read_text(tmp_path, "1 qid:1 2:5\n", features=4, max_grade=4)
    assert data.features.tolist() == [[0, 5, 0, 0]]
    assert data.max_grade == 4


@pytest.mark.parametrize("grade", [0.1, 1 / 3, 1e300])
def test_a_grade_may_be_the_declared_maximum(tmp_path, grade):
    text = f"{min(grade, 1e30)!r} qid:1 1:5\n"
    assert read_text(tmp_path, text, max_grade=grade).max_grade == grade


def test_values_above_missing_above_become_zero(tmp_path):
    text = "1 qid:1 1:1.79769313486e+308 2:-1e400 3:1e29 4:99999999999999999999999999999999\n"
    data = read_text(tmp_path, text, missing_above=1e30)
    assert data.features.tolist() == [[0, 0, np.float32(1e29), 0]]


@pytest.mark.parametrize(
    "text",
    [
        "1 qid:1 1:2 2:3\r\n0 qid:1 1:4\r\n",
        "\ufeff1 qid:1 1:2 2:3\n0 qid:1 1:4",
        "# a comment\n\n  \t\n1\tqid:1  1:2 \t2:3   \n#1 qid:9 9:9\n 0 qid:1 1:4 \n\n",
        "1 qid:1 1:2 2:3#x\n+0 qid:1 1:4\n",
        "1e0 qid:1 001:2 2:3\n-0 qid:1 1:4\n",
    ],
)
def test_line_ends_blanks_comments_and_a_byte_order_mark_are_fine(tmp_path, text):
    data = read_text(tmp_path, text)
    assert data.features.tolist() == [[2, 3], [4, 0]]
    assert data.grades.tolist() == [1, 0]
    assert not np.signbit(data.grades).any()


def test_compression_is_recognised_by_content_not_by_name(tmp_path):
    text = b"1 qid:1 1:2\n" * 1000
    for packed in (
        gzip.compress(text[:600]) + gzip.compress(text[600:]),
        zstandard.compress(text[:600]) + zstandard.compress(text[600:]),
    ):
        assert len(read_text(tmp_path, packed).features) == 1000


def test_progress_is_told_in_bytes_of_the_file(tmp_path):
    told = []
    text = "1 qid:1 1:2\n" * 200_000
    read_text(tmp_path, text, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(text), len(text))
    assert len(told) > 1


def test_arrays_are_read_only(tmp_path):
    data = read_text(tmp_path, "1 qid:1 1:2\n")
    with pytest.raises(ValueError, match="read-only"):
        data.features[0, 0] = 1


@pytest.mark.parametrize(
    "options", [{"features": 0}, {"features": 2.5}, {"max_grade": -1}, {"missing_above": 0}]
)
def test_settings_out_of_range_are_named(tmp_path, options):
    (name,) = options
    with pytest.raises(SettingsError, match=f"^{name} is "):
        read_text(tmp_path, "1 qid:1 1:2\n", **options)


BLANKS = st.text(" \t", min_size=1, max_size=3)
IDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=6)
DOC_ID_STARTS = ["#docid = ", "# docid=", "#\tdocid =\t"]
EMPTY_LINES = ["", "# note", " \t", "#docid = X"]
DIGITS = st.text("0123456789", min_size=1, max_size=25)


@st.composite
def number_texts(draw):
    """Decimal numbers that float32 can hold, written in all the usual ways."""
    text = draw(DIGITS)
    if draw(st.booleans()):
        text += "." + draw(st.just("") | DIGITS)
    if draw(st.booleans()):
        text += draw(st.sampled_from("eE")) + str(draw(st.integers(-60, 12)))
    return draw(st.sampled_from(["", "-", "+"])) + text


@st.composite
def letor_texts(draw):
    """A text with the rows, grades and ids that it must be read as."""
    rows, grades, query_ids, doc_ids, lines = [], [], [], [], []
    for qid in draw(st.lists(IDS, min_size=1, max_size=4, unique=True)):
        for _ in range(draw(st.integers(1, 3))):
            blank = draw(BLANKS)
            indices = draw(st.sets(st.integers(1, 12), max_size=6))
            values = {index: draw(number_texts()) for index in sorted(indices)}
            grade = draw(st.sampled_from(["0", "1", "2", "0.5", "3e0"]))
            doc_id = draw(st.just("") | IDS)
            line = [grade, f"qid:{qid}", *(f"{i}:{v}" for i, v in values.items())]
            if doc_id:
                line.append(draw(st.sampled_from(DOC_ID_STARTS)) + doc_id)
            text = draw(st.sampled_from(["", " "])) + blank.join(line) + draw(st.just("") | BLANKS)
            lines += draw(st.lists(st.sampled_from(EMPTY_LINES), max_size=2))
            lines.append(text)
            rows.append({index: np.float32(float(value)) for index, value in values.items()})
            grades.append(float(grade))
            query_ids.append(qid)
            doc_ids.append(doc_id)
    rows[-1][12] = np.float32(1)
    lines[-1] = f"{grades[-1]} qid:{query_ids[-1]} " + " ".join(
        f"{index}:{value!s}" for index, value in sorted(rows[-1].items())
    )
    doc_ids[-1] = ""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = (
        draw(st.sampled_from(["", "\ufeff"])) + end.join(lines) + draw(st.sampled_from(["", end]))
    )
    matrix = np.zeros((len(rows), 12), np.float32)
    for row, values in zip(matrix, rows, strict=True):
        for index, value in values.items():
            row[index - 1] = value
    return text, matrix, grades, query_ids, doc_ids


PACKERS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@settings(max_examples=60, deadline=None)
@given(letor_texts(), st.sampled_from(sorted(PACKERS)), st.integers(1, 200))
def test_any_text_reads_as_what_it_was_written_from(tmp_path_factory, written, suffix, block_bytes):
    text, matrix, grades, query_ids, doc_ids = written
    directory = tmp_path_factory.mktemp("arrays")
    path = directory / f"data.txt{suffix}"
    path.write_bytes(PACKERS[suffix](text.encode()))
    with SourceFile(path) as source:
        parse_letor(source, Declared(), directory, block_bytes=block_bytes)
    data = open_arrays(directory, None)
    assert data.features.tobytes() == matrix.tobytes()
    assert data.grades.tolist() == grades
    assert data.query_ids[data.query_of_document].tolist() == query_ids
    assert ([""] * len(grades) if data.doc_ids is None else data.doc_ids.tolist()) == doc_ids


def test_reading_agrees_with_scikit_learn(tmp_path):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.default_rng(5)
    lines = io.StringIO()
    for row in range(400):
        chosen = np.flatnonzero(rng.random(50) < 0.7)
        values = (rng.normal(size=50) * 10.0 ** rng.integers(-8, 8, 50)).tolist()
        features = " ".join(f"{i + 1}:{values[i]!r}" for i in chosen)
        lines.write(f"{rng.integers(0, 5)} qid:{row // 7} {features}\n")
    path = tmp_path / "data.txt"
    path.write_text(lines.getvalue())
    matrix, grades, _ = load_svmlight_file(str(path), query_id=True)
    data = read_letor(path, cache=False)
    assert np.array_equal(data.features, matrix.toarray().astype(np.float32))
    assert np.array_equal(data.grades, grades)


def test_a_source_without_suffix_or_folder_is_a_path_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").write_text("1 qid:1 1:2\n")
    assert len(read_letor("data")) == 1
