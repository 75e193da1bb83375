"""What is written reads back as the identical data set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dualrank.data.dataset import Dataset
from dualrank.data.letor.reader import read_letor
from dualrank.data.letor.writer import write_letor
from dualrank.errors import DataError

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=30, deadline=None)
@given(arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2), elements=FLOATS))
def test_what_is_written_reads_back_as_the_identical_bits(tmp_path_factory, matrix):
    path = tmp_path_factory.mktemp("written") / "data.txt"
    write_letor(Dataset.from_arrays(matrix, [1] * len(matrix), [0.5] * len(matrix)), path)
    assert read_letor(path, cache=False).features.tobytes() == matrix.tobytes()


def test_random_bit_patterns_are_written_so_that_they_read_back(tmp_path):
    bits = np.random.default_rng(3).integers(0, 0x7F800000, 100_000).astype(np.uint32)
    bits[::2] |= np.uint32(0x80000000)
    matrix = bits.view(np.float32).reshape(-1, 100)
    path = tmp_path / "data.txt"
    write_letor(Dataset.from_arrays(matrix, [1] * len(matrix), [0.5] * len(matrix)), path)
    assert read_letor(path, cache=False).features.tobytes() == matrix.tobytes()
    assert max(len(token) for token in path.read_text().split()) <= len("100:-1.23456789e-38")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "-0"),
        (1, "1"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1234567, "1234567"),
        (100, "100"),
        (0.00001, "0.00001"),
        (1.5e-7, "1.5e-7"),
        (1e20, "1e+20"),
        (3.4028235e38, "3.4028235e+38"),
        (16777216, "16777216"),
        (1 / 3, "0.33333334"),
    ],
)
def test_values_are_written_as_people_write_them(tmp_path, value, text):
    path = tmp_path / "data.txt"
    write_letor(Dataset.from_arrays([[value]], [7], [2]), path)
    assert path.read_text() == f"2 qid:7 1:{text}\n"


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz", "data.txt.zst"])
def test_a_data_set_written_reads_back_whole(tmp_path, name):
    rng = np.random.default_rng(4)
    data = Dataset.from_arrays(
        rng.normal(size=(50, 7)) * [1, 1, 1, 1, 1, 1, 0],
        np.repeat([f"frage-{i}-ä#:" for i in range(10)], 5),
        rng.integers(0, 9, 50) / 2,
        doc_ids=[f"d{i}" if i % 3 else "" for i in range(50)],
    )
    write_letor(data, tmp_path / name)
    again = read_letor(tmp_path / name)
    assert np.array_equal(again.features, data.features)
    assert np.array_equal(again.grades, data.grades)
    assert np.array_equal(again.offsets, data.offsets)
    assert again.query_ids.tolist() == data.query_ids.tolist()
    assert again.doc_ids.tolist() == data.doc_ids.tolist()


def test_compressed_files_of_equal_data_are_equal_bytes(tmp_path):
    data = Dataset.from_arrays([[1.0]], [1], [0])
    for name in ("a.gz", "b.gz", "a.zst", "b.zst"):
        write_letor(data, tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.zst").read_bytes() == (tmp_path / "b.zst").read_bytes()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"qid": ["a b"]}, "found a blank in the query id 'a b'; LETOR text allows none"),
        ({"qid": [""]}, "found an empty query id; LETOR text needs an id for every query"),
        ({"doc_ids": ["x\ty"]}, "found a blank in the document id 'x\\ty'; LETOR text allows none"),
        (
            {"qid": ["ä" * 501]},
            f"found the query id '{'ä' * 40}'... of 1002 bytes; expected at most 1000",
        ),
        (
            {"features": [[]]},
            "this data set has no documents or no features; LETOR text needs both",
        ),
        ({"grades": None}, "this data set has no grades; they are needed here"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(tmp_path, change, sentence):
    arrays = {"features": [[1.0]], "qid": ["1"], "grades": [1], **change}
    with pytest.raises(DataError) as caught:
        write_letor(Dataset.from_arrays(**arrays), tmp_path / "data.txt")
    assert str(caught.value) == sentence
    assert list(tmp_path.iterdir()) == []
