"""A format from outside the package is read as the others are."""

import json

import pytest

from dualrank.data.log.columns import find_columns
from dualrank.data.log.formats import FORMATS
from dualrank.data.log.log_format import LogFormat
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.read_log import read_log
from dualrank.errors import DataError


class Searches(LogFormat):
    """One JSON object per search, with its results and the ids that were clicked."""

    title = "searches"
    begins = b'{"searchUid"'

    def rows(self, engine, source):
        return (
            "SELECT searchUid AS session_id, q AS query_id, doc_id, position, "
            "list_contains(clicked, doc_id) AS clicked FROM (SELECT *, unnest(results) AS doc_id, "
            "generate_subscripts(results, 1) AS position FROM read_json("
            f"{engine.texts(source.files)}, format = 'newline_delimited'))"
        )


@pytest.fixture
def registered():
    FORMATS.insert(0, Searches())
    yield
    del FORMATS[0]


def test_a_format_is_a_class_and_a_line(tmp_path, registered):
    searches = [
        {"searchUid": "s1", "q": "cats", "results": ["a", "b"], "clicked": ["b"]},
        {"searchUid": "s2", "q": "cats", "results": ["a", "b"], "clicked": []},
    ]
    (tmp_path / "export.json").write_text("\n".join(map(json.dumps, searches)))
    log = read_log(tmp_path / "export.json")
    assert log.sessions == 2
    assert log.clicks_per_list.tolist() == [[0, 1]]


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_text_in_another_encoding_is_called_that(tmp_path, name):
    names = ("session_id", "query_id", "doc_id", "position", "clicked")
    rows = [dict(zip(names, ("s", "\u6c49\u5b57", "d", "1", "1"), strict=True))] * 3
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    if name == "log.csv":
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (tmp_path / name).write_bytes("\n".join(lines).encode("gb18030"))
    with pytest.raises(DataError, match=r"not UTF-8 text .*iconv -f GB18030 -t UTF-8"):
        read_log(tmp_path / name)


def test_another_encoding_far_down_a_file_is_named_with_its_line(tmp_path):
    row = "s{},q,d,1,0\n"
    text = "session_id,query_id,doc_id,position,clicked\n"
    text += "".join(row.format(number) for number in range(60_000)) + "s,\u6c49\u5b57,d,1,1\n"
    (tmp_path / "log.csv").write_bytes(text.encode("gb18030"))
    with pytest.raises(DataError, match=r"(?s)Line: 60002.*Invalid unicode.*not utf-8"):
        read_log(tmp_path / "log.csv")


def test_words_before_the_objects_of_json_lines_are_shown(tmp_path):
    (tmp_path / "log.json").write_text('ubi_queries\t{"query_id": "q"}\n')
    with pytest.raises(DataError, match=r"first line begins with 'ubi_queries.*nothing before it"):
        read_log(tmp_path / "log.json")


def test_all_missing_columns_are_named_and_many_columns_cut():
    present = ["session_id", "position", *(f"f{number}" for number in range(40))]
    with pytest.raises(DataError) as caught:
        find_columns(present, LogOptions(columns={"doc_id": "item"}))
    said = str(caught.value)
    assert "columns 'query_id', 'item' (as doc_id), 'clicked' are missing" in said
    assert "(42 in all);" in said
    with pytest.raises(DataError, match="text begins with a line of names"):
        find_columns(["00:00:01", "7"], LogOptions())
