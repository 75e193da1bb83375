"""A format from outside the package is read as the others are."""

import json

import pytest

from dualrank.data.log.formats import FORMATS
from dualrank.data.log.log_format import LogFormat
from dualrank.data.log.read_log import read_log


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
