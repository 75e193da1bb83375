"""A reduced log that is not what was written is refused, with a digest or without."""

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.data.log.read_log import read_log
from dualrank.data.log.saved import KEY, to_table, write_log
from dualrank.errors import DataError

from .conftest import COLUMNS, long_table
from .test_saved import equal


@pytest.fixture(scope="module")
def log():
    rows = [
        ("s1", "q1", "a", 1, 0, "phone", 0.5),
        ("s1", "q1", "b", 2, 1, "phone", 2.0),
        ("s2", "q2", "c", 1, 1, "desk", 0.0),
    ]
    table = long_table(rows, (*COLUMNS, "device", "dwell"))
    return read_log(table, contexts=["device"], event_kinds=["dwell"])


def changed(log, path, change, *, digest=False):
    """The log as a file in which `change` was made to the rows, with a digest or without."""
    table = to_table(log)
    rows, note = table.to_pylist(), json.loads(table.schema.metadata[KEY])
    change(rows)
    if not digest:
        del note["digest"]
    metadata = {KEY: json.dumps(note)}
    pq.write_table(pa.Table.from_pylist(rows, table.schema.with_metadata(metadata)), path)
    return path


def first(rows):
    return rows[0]["happened"][0]


CHANGES = {
    "row 0 happened in less than one session": lambda rows: first(rows).update(sessions=-5),
    "more sessions than can be counted": lambda rows: first(rows).update(sessions=10**18),
    "row 0 has clicks where it shows no doc": lambda rows: first(rows).update(clicks=[0]),
    "row 1 has clicks where it shows no doc": lambda rows: rows[1]["happened"][0].update(
        clicks=[2]
    ),
    "row 0 shows a document twice": lambda rows: rows[0].update(doc_ids=["a", "a"]),
    "row 1 has no document": lambda rows: rows[1].update(doc_ids=[]),
    "row 0 has more than 1024 documents": lambda rows: rows[0].update(
        doc_ids=[str(number) for number in range(1025)]
    ),
    "a value of device is not among those": lambda rows: first(rows).update(device="fridge"),
    "a value of happened.sessions is missing": lambda rows: first(rows).update(sessions=None),
    "a value of doc_ids is missing": lambda rows: rows[0].update(doc_ids=["a", None]),
    "row 0 has an amount of dwell that is no number from 0": lambda rows: first(rows)["events"][
        "dwell"
    ][0].update(amount=-1.0),
    "amount of dwell that is no number": lambda rows: first(rows)["events"]["dwell"][0].update(
        amount=float("nan")
    ),
    "row 0 has dwell where it shows no doc": lambda rows: first(rows)["events"]["dwell"][0].update(
        position=3
    ),
}


@pytest.mark.parametrize("words", CHANGES)
def test_what_no_log_can_hold_is_named(tmp_path, log, words):
    path = changed(log, tmp_path / "log.parquet", CHANGES[words])
    with pytest.raises(DataError) as caught:
        read_log(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: damaged: not a reduced log (")
    assert words in sentence
    assert "\n" not in sentence


def test_what_a_log_could_hold_is_known_by_its_digest(tmp_path, log):
    path = changed(log, tmp_path / "log.parquet", lambda rows: None, digest=True)
    equal(read_log(path), log)
    for change in (
        lambda rows: first(rows).update(sessions=7),
        lambda rows: rows[0].update(doc_ids=["a", "bb"]),
        lambda rows: rows[0].update(doc_ids=["ab", ""]),
        lambda rows: first(rows).update(clicks=[1]),
        lambda rows: first(rows)["events"]["dwell"][0].update(amount=0.25),
        lambda rows: rows.pop(),
    ):
        changed(log, path, change)
        read_log(path)
        with pytest.raises(DataError, match="its digest differs from that of what was written"):
            read_log(changed(log, path, change, digest=True))


def test_flipped_bytes_change_nothing_or_are_found(tmp_path, log):
    path = tmp_path / "log.parquet"
    write_log(log, path)
    whole, luck = path.read_bytes(), random.Random(0)
    said = []
    for _ in range(150):
        content = bytearray(whole)
        content[luck.randrange(len(content))] ^= 1 << luck.randrange(8)
        path.write_bytes(content)
        try:
            found = read_log(path)
        except DataError as error:
            said.append(str(error))
        else:
            equal(found, log)
    assert len(said) > 75
    assert all(str(path) in sentence and "\n" not in sentence for sentence in said)


def test_the_digest_does_not_depend_on_how_rows_are_cut(tmp_path, log, monkeypatch):
    whole = to_table(log)
    monkeypatch.setattr("dualrank.data.log.saved.LISTS_PER_TABLE", 1)
    assert to_table(log).schema.metadata == whole.schema.metadata
    write_log(log, tmp_path / "pieces.parquet")
    assert pq.ParquetFile(tmp_path / "pieces.parquet").num_row_groups == 2
    monkeypatch.undo()
    equal(read_log(tmp_path / "pieces.parquet"), log)


def test_positions_that_the_statistics_of_a_file_deny_are_refused(tmp_path):
    """A database may believe them, and ask no row."""
    path = tmp_path / "log.parquet"
    rows = [("s1", "q", f"d{n}", n, 0) for n in range(1, 4)]
    pq.write_table(long_table(rows), path, compression="none", use_dictionary=False)
    three, far = (np.int64(n).tobytes() for n in (3, 2_139_081_118))
    content = path.read_bytes()
    data = content.index(b"".join(np.int64(n).tobytes() for n in (1, 2, 3)))
    path.write_bytes(content[: data + 16] + far + content[data + 24 :])
    assert content[data + 16 : data + 24] == three
    with pytest.raises(DataError, match="it holds position 2,139,081,118, which its own stat"):
        read_log(path)


def test_a_log_with_gaps_keeps_its_places(tmp_path, log):
    gaps = RankedLists(np.array([[-1, 0, 1], [2, -1, -1]], dtype=np.int32), log.lists.queries)
    clicks = np.array([[False, False, True], [True, False, False]])
    partial = ClickLog.from_clicks(gaps, log.list_of, clicks, catalogue=log.catalogue)
    write_log(partial, tmp_path / "log.parquet")
    again = read_log(tmp_path / "log.parquet")
    assert sorted(again.lists.documents.tolist()) == sorted(gaps.documents.tolist())
    assert again.clicks_per_list.sum(axis=0).tolist() == [1, 0, 1]


@pytest.mark.parametrize("counts", [[-1, 2], [2**62, 2**62], [2**55, 1]])
def test_counts_that_cannot_be_added_up_are_refused(counts):
    lists = RankedLists(np.array([[0], [1]], dtype=np.int32), np.array([0, 1], dtype=np.int32))
    clicks = np.array([[True], [False]])
    with pytest.raises(DataError, match="sessions; "):
        ClickLog.from_clicks(lists, np.array([0, 1]), clicks, np.array(counts))


@pytest.mark.parametrize("length", [100, 70_000])
def test_ids_may_have_any_length(tmp_path, length):
    """A numpy text would give each of 20,000 ids the room of the longest."""
    names = [f"d{number}" for number in range(20_000)]
    names[3] = "x" * length
    rows = pa.table(
        {
            "session_id": np.arange(20_000) // 10,
            "query_id": ["q" * 100] * 20_000,
            "doc_id": names,
            "position": np.arange(20_000) % 10 + 1,
            "clicked": np.zeros(20_000, dtype=np.int8),
        }
    )
    log = read_log(rows)
    write_log(log, tmp_path / "log.parquet")
    again = read_log(tmp_path / "log.parquet")
    assert sorted(again.catalogue.doc_ids) == sorted(names)
    assert again.catalogue.query_ids.tolist() == ["q" * 100]


@pytest.mark.parametrize(
    "change",
    [
        {"sessions": "many"},
        {"bad": None},
        {"source": 3},
        {"filtered": {"max_clicks": "few"}},
        {"problems": [{"kind": "no kind", "count": 1, "example": ""}]},
        {"clients": [{"name": "c", "sessions": 1, "clicks": 1, "share_of_clicks": "all"}]},
    ],
)
def test_an_account_that_cannot_be_true_is_refused(tmp_path, log, change):
    table = to_table(log)
    note = json.loads(table.schema.metadata[KEY])
    del note["digest"]
    note["reading"] |= change
    path = tmp_path / "log.parquet"
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(note)}), path)
    with pytest.raises(DataError, match=r"log\.parquet: damaged: not a reduced log \("):
        read_log(path)


def test_what_is_found_while_rows_are_read_names_the_file(tmp_path):
    rows = [(f"session {number}" * 9, "q", "d", 1, 0) for number in range(2000)]
    path = tmp_path / "log.parquet"
    pq.write_table(long_table(rows), path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[100:400] = b"\xff" * 300
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_long_values_are_not_repeated_whole(tmp_path):
    path = tmp_path / "log.csv"
    text = "x" * 100_000
    path.write_text(f"session_id,query_id,doc_id,position,clicked\ns,q,a,1,0\ns,{text},b,2,0\n")
    with pytest.raises(DataError, match=r"holds queries 'q' and 'x+…") as caught:
        read_log(path)
    assert len(str(caught.value)) < 500 + len(str(path))
    path.write_text(",".join(f"column {number}" for number in range(1000)) + "\n")
    with pytest.raises(DataError, match=r"column 1, .*… \(1000 in all\)") as caught:
        read_log(path)
    assert len(str(caught.value)) < 500 + len(str(path))
