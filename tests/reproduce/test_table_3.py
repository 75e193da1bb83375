"""Table 3 on a small generated web, and on the same web as a user's own files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.users import make_user
from dualrank.errors import DataError, SettingsError
from dualrank.pages.small_web import WebSize
from dualrank.pages.tokens import Tokeniser
from dualrank.reproduce.own_log import OwnLog, extract_own
from dualrank.reproduce.runner import run
from dualrank.reproduce.search_engine import VERSIONS, Log, display, simulate_log
from dualrank.reproduce.table_3 import METHODS, ClickModels
from dualrank.reproduce.text_collection import TextCollection
from dualrank.reproduce.web_files import write_web

SIZE = WebSize(pages=300, queries=60, topics=5, subtopics=3)
COLLECTION = TextCollection(size=SIZE)
FILES = {
    "pages": "pages.jsonl",
    "queries": "queries.tsv",
    "log": "clicks.parquet",
    "judgments": "judgments.qrels",
}


@pytest.fixture(scope="module")
def shown():
    return display(COLLECTION.load(0), 0)


def test_every_query_has_several_versions_of_its_list(shown):
    assert len(shown.lists) == VERSIONS * len(shown.train)
    first, second = (
        shown.lists.documents[: len(shown.train)],
        shown.lists.documents[len(shown.train) : 2 * len(shown.train)],
    )
    assert (first != second).any()


@pytest.mark.parametrize("sessions", [2, 10])
def test_every_list_has_its_sessions(shown, sessions):
    log = simulate_log(shown, [make_user("pbm"), make_user("dbn")], Log(sessions), 0)
    assert (log.sessions_per_list == sessions).all()


def test_popular_queries_are_asked_more_often(shown):
    log = simulate_log(shown, [make_user("pbm")], Log(50, popularity=True), 0)
    assert log.sessions_per_list.max() > 10 * log.sessions_per_list.min()
    assert log.sessions_per_list.mean() == pytest.approx(50, rel=0.05)


def test_table_3_and_the_sessions_have_every_row():
    experiment = ClickModels(size=SIZE, seeds=1, steps=30, sessions=(2,))
    table, by_sessions = run(experiment).results.values()
    assert table.methods == list(METHODS)
    assert set(table.significance["p_values"]) == set(METHODS) - {"dla"}
    assert {"map", "ndcg@10", "err@1"} <= set(table.runs[0].metrics)
    assert 0 < table.runs[0].model_extra["head"]["ndcg@10"] <= 1
    assert {run.model_extra["sessions_per_list"] for run in by_sessions.runs} == {2}
    assert "2" in by_sessions.significance["by_sessions_per_list"]
    assert table.of("dla")[0].propensity is not None
    json.loads(table.model_dump_json())


def test_bad_settings_are_refused():
    for options, words in (
        ({"methods": ("magic",)}, "unknown method 'magic'"),
        ({"methods": ("click-model-magic",)}, "unknown click model 'magic'"),
        ({"user": "nobody"}, "unknown user"),
        ({"sessions": (0,)}, "at least one session"),
        ({"data": "internet"}, "unknown collection"),
        ({"pages": Path("x"), "log": Path("y")}, "give also queries=PATH, judgments=PATH"),
    ):
        with pytest.raises(SettingsError, match=words):
            ClickModels(**options)
    with pytest.raises(DataError, match="is not there"):
        ClickModels(data="nfcorpus")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The small web as a user's own files."""
    folder = tmp_path_factory.mktemp("own")
    counts = write_web(folder, log=Log(12), population="pbm", size=SIZE)
    assert (counts["pages"], counts["queries"]) == (300, 60)
    with (folder / "judgments.qrels").open("a") as out:
        out.write(f"{COLLECTION.load(0).test.query_ids[0]} 0 unknown-page 3\n")
    return folder


def own_files(folder):
    return {name: folder / file for name, file in FILES.items()}


def own_log(folder, **changes):
    features = folder / "features.parquet"
    if not features.exists():
        extract_own(**own_files(folder), tokeniser=Tokeniser()).write(features)
    log, judgments = folder / FILES["log"], folder / FILES["judgments"]
    return replace(OwnLog.of(features, log, judgments, 10), **changes)


def test_own_pages_log_and_judgments_are_read(own):
    data = own_log(own).load()
    assert set(data.train.query_ids) & set(data.test.query_ids) == set()
    assert data.log.sessions_per_list.min() >= 10
    assert data.log.lists.documents.max() < data.train.document_count
    assert np.isfinite(data.train.features).all()


def test_judged_pages_that_are_unknown_are_named(own):
    found = extract_own(**own_files(own), tokeniser=Tokeniser())
    assert [document for _, document in found.candidates.unknown] == ["unknown-page"]


def test_table_3_of_own_data(own, tmp_path):
    experiment = ClickModels(**own_files(own), seeds=1, steps=30, methods=("dla", "initial"))
    done = run(experiment, tmp_path)
    (table,) = done.results.values()
    assert (tmp_path / "features.parquet").exists()
    assert table.methods == ["dla", "initial"]
    assert "users" not in table.settings
    assert "initial" in table.significance["p_values"]


def test_one_query_is_not_enough_to_learn_from_and_to_choose_by(own, tmp_path):
    table = pq.read_table(own / "clicks.parquet")
    one = str(own_log(own).load().train.query_ids[0])
    pq.write_table(table.filter(pc.equal(table["query_id"], one)), tmp_path / "one.parquet")
    with pytest.raises(DataError, match="only one query without judgments"):
        own_log(own, log=tmp_path / "one.parquet").load()


def test_lists_with_too_few_sessions_leave_nothing(own):
    with pytest.raises(DataError, match="has 13 sessions or more"):
        own_log(own, min_sessions=13).load()


def test_judgments_that_leave_nothing_to_learn_or_test_are_refused(own, tmp_path):
    def refused(rows, message):
        (tmp_path / "j.csv").write_text(rows)
        with pytest.raises(DataError, match=message):
            own_log(own, judgments=tmp_path / "j.csv").load()

    refused("query_id,doc_id\nq1,page1\n", "column 'grade' is missing")
    nowhere = "query_id,doc_id,grade\nq1,nowhere,1\nq2,nowhere,1\n"
    refused(nowhere, "no judged page is among the pages")
    data = own_log(own).load()
    every = {*data.train.query_ids, *data.test.query_ids}
    names = data.train.query_ids[data.train.query_of_document]
    shown = dict(zip(names, data.train.doc_ids, strict=True))
    rows = [f"{query},{shown.get(query, 'page1')},1" for query in sorted(every)]
    refused("query_id,doc_id,grade\n" + "\n".join(rows), "others are needed to learn from")


def test_own_data_have_no_oracle(own):
    with pytest.raises(SettingsError, match="no oracle"):
        ClickModels(**own_files(own), methods=("oracle",))
