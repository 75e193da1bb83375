"""Whatever is wrong with a LETOR file is said in one sentence with file and line."""

import gzip

import pytest
import zstandard

from dualrank.data.letor.reader import read_letor
from dualrank.errors import DataError

GOOD = "1 qid:1 1:1 2:2\n"
LINE = "a line is 'grade qid:ID index:value ...'"
FINITE = "expected a finite number that float32 can hold"


def sentence_for(path, **options):
    with pytest.raises(DataError) as caught:
        read_letor(path, **options)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    assert [file.name for file in path.parent.iterdir()] == [path.name] * path.exists()
    return sentence.removeprefix(str(path))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("hello", f"found 'hello'; expected a grade, a number of 0 or more, since {LINE}"),
        ("nan qid:1 1:1", f"found 'nan'; expected a grade, a number of 0 or more, since {LINE}"),
        ("1x qid:1 1:1", f"found '1x'; expected a grade, a number of 0 or more, since {LINE}"),
        ("-1 qid:1 1:1", "found the grade -1; expected 0 or more"),
        ("1e39 qid:1 1:1", "found the grade 1e39; expected a number that float32 can hold"),
        ("1e999 qid:1 1:1", "found the grade 1e999; expected a number that float32 can hold"),
        ("1", f"the line ends after the grade; expected qid:ID, since {LINE}"),
        ("1 1:1 2:2", f"found '1:1'; expected qid:ID, since {LINE}"),
        ("1 id:1 1:1 2:2", f"found 'id:1'; expected qid:ID, since {LINE}"),
        ("1 qid: 1:1", "found 'qid:'; expected an id after qid:"),
        ("1 qid:1 0:1", "found the feature index 0 in '0:1'; expected indices from 1"),
        ("1 qid:1 2:1 1:1", "found feature 1 after feature 2; expected ascending indices"),
        ("1 qid:1 1:1 7:1 7:1", "found feature 7 twice; expected each index once"),
        ("1 qid:1 1", "found '1'; expected index:value with an index from 1"),
        ("1 qid:1 a:1", "found 'a:1'; expected index:value with an index from 1"),
        ("1 qid:1 -1:1", "found '-1:1'; expected index:value with an index from 1"),
        ("1 qid:1 1 :1", "found '1'; expected index:value with an index from 1"),
        ("1 qid:1 \x001:1", "found '\\x001:1'; expected index:value with an index from 1"),
        ("1 qid:1 1:", "found '' as the value of feature 1; expected a number"),
        ("1 qid:1 1: 2", "found '' as the value of feature 1; expected a number"),
        ("1 qid:1 1:x", "found 'x' as the value of feature 1; expected a number"),
        ("1 qid:1 1:1e", "found '1e' as the value of feature 1; expected a number"),
        ("1 qid:1 1:1_0", "found '1_0' as the value of feature 1; expected a number"),
        ("1 qid:1 1:0x10", "found '0x10' as the value of feature 1; expected a number"),
        ("1 qid:1 1:1.2.3", "found '1.2.3' as the value of feature 1; expected a number"),
        ("1 qid:1 1:.", "found '.' as the value of feature 1; expected a number"),
        ("1 qid:1 1:nan", f"found nan as the value of feature 1; {FINITE}"),
        ("1 qid:1 2:-Inf", f"found -Inf as the value of feature 2; {FINITE}"),
        ("1 qid:1 2:infinity", f"found infinity as the value of feature 2; {FINITE}"),
        ("1 qid:1 2:1e39", f"found 1e39 as the value of feature 2; {FINITE}"),
        ("1 qid:1 2:-1e999", f"found -1e999 as the value of feature 2; {FINITE}"),
        (
            "1 qid:1 3:3.4028235677973366e38 4:x",
            f"found 3.4028235677973366e38 as the value of feature 3; {FINITE}",
        ),
        ("1 qid:1 1000001:1", "found feature 1000001; expected indices from 1 to 1000000"),
        (
            "1 qid:1 99999999999999999999:1",
            "found feature 99999999999999999999; expected indices from 1 to 1000000",
        ),
        ("1 qid:1 10000005:1", "found feature 10000005; expected indices from 1 to 1000000"),
        (
            f"1 qid:1 {'0' * 5000}2:1 {'0' * 50}1:1",
            "found feature 1 after feature 2; expected ascending indices",
        ),
        (
            "1 qid:1 1:" + "7" * 50 + "x",
            f"found '{'7' * 38}...' as the value of feature 1; expected a number",
        ),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, sentence):
    path = tmp_path / "train.txt"
    path.write_text(f"# made by hand\n\n{GOOD}{line}\n{GOOD}")
    assert sentence_for(path) == f":4: {sentence}"


@pytest.mark.parametrize("pieces", [1, 40_000])
def test_a_query_in_two_places_is_named(tmp_path, pieces):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:7 1:1\n" * pieces + "1 qid:8 1:1\n\n1 qid:7 1:1\n1 qid:8 1:1\n")
    assert sentence_for(path) == (
        f":{pieces + 3}: found query '7' again after another query; "
        "expected the lines of a query together"
    )


def test_an_index_beyond_the_declared_features_is_named(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(GOOD + "1 qid:1 3:1\n")
    found = sentence_for(path, features=2)
    assert found == ":2: found feature 3; expected indices from 1 to 2"


@pytest.mark.parametrize("grade", ["5", "4.0000001000000000000000000000000000000001e0"])
def test_a_grade_above_the_declared_maximum_is_named(tmp_path, grade):
    path = tmp_path / "train.txt"
    path.write_text(GOOD + f"{grade} qid:1 1:1\n")
    found = sentence_for(path, max_grade=4 if grade == "5" else 3.5)
    assert found.startswith(f":2: found the grade {grade[:40]}")
    assert found.endswith(f"; expected at most {'4' if grade == '5' else '3.5'}")


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments\n", "\ufeff", "\ufeff\n"])
def test_a_file_without_documents_is_named(tmp_path, text):
    path = tmp_path / "train.txt"
    path.write_text(text)
    assert sentence_for(path) == f": found no documents; {LINE}"


def test_a_file_without_features_is_named(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1\n")
    assert sentence_for(path) == f": found no features on any line; {LINE}"


def test_an_error_far_into_the_file_has_the_right_line(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(GOOD * 200_000 + "1 qid:1 1:x\n" + GOOD)
    assert sentence_for(path).startswith(":200001: found 'x'")


@pytest.mark.parametrize("text", [b"1 qid:\xff\xfe 1:1\n", b"1 qid:2 1:1 # docid = \xc3\n"])
def test_an_id_that_is_not_utf8_is_named(tmp_path, text):
    path = tmp_path / "train.txt"
    path.write_bytes("1 qid:ä 1:1 # docid = ö\n".encode() + text)
    assert sentence_for(path) == ":2: found an id that is not UTF-8; expected UTF-8 text"


@pytest.mark.parametrize("line", ["1 qid:{} 1:1\n", "1 qid:1 1:1 # docid = {}\n"])
def test_an_id_that_is_far_too_long_is_named(tmp_path, line):
    path = tmp_path / "train.txt"
    path.write_text(GOOD * 3 + line.format("x" * 400_000) + GOOD)
    assert sentence_for(path) == ":4: found an id of 400000 bytes; expected at most 1000"


def test_a_line_without_end_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.data.letor.lines.LONGEST_LINE", 1 << 20)
    path = tmp_path / "train.txt"
    path.write_text(GOOD + "1" * (1 << 22))
    assert sentence_for(path) == (
        ":2: the line is longer than 1048576 bytes; expected text with line ends"
    )


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    assert sentence_for(tmp_path / "train.txt") == ": there is no such file"
    folder = tmp_path / "folder"
    folder.mkdir()
    assert sentence_for(folder) == ": this is a folder; expected a file"


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("damage", ["cut", "garbage inside", "garbage after"])
def test_damaged_compression_is_named(tmp_path, kind, damage):
    path = tmp_path / "train.txt"
    text = "".join(f"1 qid:{i} 1:{i * 0.37}\n" for i in range(5_000)).encode()
    packer = zstandard.ZstdCompressor(write_checksum=True)
    packed = bytearray(gzip.compress(text) if kind == "gzip" else packer.compress(text))
    if damage == "cut":
        packed = packed[:-5]
    elif damage == "garbage inside":
        packed[len(packed) // 2 : len(packed) // 2 + 50] = bytes(range(50))
    else:
        packed += b"garbage"
    path.write_bytes(packed)
    assert sentence_for(path) == (
        f": the {kind} data are damaged or end too early; expected a whole file"
    )
