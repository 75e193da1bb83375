"""`dualrank reduce` as a new user meets it."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dualrank as dr
from dualrank.cli.app import app
from dualrank.data.log.reading_report import BadLogError
from dualrank.errors import DataError, DualrankError

CLEAN = {
    "visit": ["a", "a", "b"],
    "query_id": ["q", "q", "q"],
    "doc_id": ["x", "y", "x"],
    "position": [1, 2, 1],
    "clicked": [0, 1, 0],
    "client_id": ["robot", "robot", "someone"],
}


def run(*words):
    return CliRunner().invoke(app, ["reduce", *map(str, words)])


@pytest.fixture
def log(tmp_path):
    pyarrow.csv.write_csv(pa.table(CLEAN), tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_a_log_is_reduced_and_reduced_logs_are_read(log, tmp_path):
    out = tmp_path / "reduced.parquet"
    done = run(log, "--out", out, "--column", "session_id=visit")
    assert done.exit_code == 0
    assert "3 rows, 2 sessions, 1 click" in done.output
    assert "robot" in done.output
    assert "2 sessions, 2 lists, 2 patterns" in done.output.replace("\n", "")
    assert pq.read_table(out).column_names == ["query_id", "doc_ids", "happened"]
    again = run(out, "--out", tmp_path / "again.parquet")
    assert again.exit_code == 0


def test_a_reduced_log_takes_no_events_and_is_not_read_with_its_own_log(log, tmp_path):
    folder = tmp_path / "mix"
    folder.mkdir()
    pq.write_table(pa.table({**CLEAN, "session_id": CLEAN["visit"]}), folder / "a.parquet")
    out = folder / "log.parquet"
    assert run(folder, "--out", out).exit_code == 0
    again = run(folder, "--out", out)
    assert f"{out} is a reduced log among 2 files; give it alone, or" in str(again.exception)
    other = run(out, "--events", "nowhere.jsonl", "--out", tmp_path / "r.parquet")
    assert "reduced already; events are given when it is reduced" in str(other.exception)


def test_a_log_without_a_click_is_reduced_with_a_warning(tmp_path, caplog):
    silent = {**CLEAN, "session_id": CLEAN["visit"], "clicked": [0, 0, 0]}
    pq.write_table(pa.table(silent), tmp_path / "log.parquet")
    assert run(tmp_path / "log.parquet", "--out", tmp_path / "r.parquet").exit_code == 0
    assert "there is no click in this log, and nothing can be learned from it" in caplog.text


def test_the_result_as_json_names_what_was_filtered(log, tmp_path):
    words = ("--out", tmp_path / "r.parquet", "--column", "session_id=visit", "--json")
    done = run(log, *words, "--max-client-share", 0.5)
    content = json.loads(done.stdout)
    assert content["sessions"] == 1
    assert content["reading"]["filtered"] == {"max_client_share": 1}
    assert content["reading"]["clients"][0]["left_out"]


def test_a_bad_log_ends_with_the_whole_table_and_writes_nothing(tmp_path):
    rows = {**CLEAN, "session_id": CLEAN["visit"], "position": [1, 3, 0]}
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    done = run(tmp_path / "log.parquet", "--out", tmp_path / "r.parquet")
    assert isinstance(done.exception, BadLogError)
    assert "gap in the positions" in done.output
    assert "position 0" in done.output
    assert not (tmp_path / "r.parquet").exists()
    allowed = run(tmp_path / "log.parquet", "--out", tmp_path / "r.parquet", "--max-bad-share", 1)
    assert isinstance(allowed.exception, DualrankError)
    assert "none of its 2 sessions is left" in str(allowed.exception)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "r.csv"], "a reduced log is written as .parquet"),
        (["--out", "r.parquet", "--column", "visit"], "--column takes MEANING=NAME, not 'visit'"),
        (["--out", "r.parquet"], "column 'session_id' is missing"),
        (
            ["--out", "r.parquet", "--engine", "spark", "--events", "e.jsonl"],
            "UBI exports are read by --engine duckdb alone",
        ),
        (["--out", "r.parquet", "--action", "buy"], "--action chooses among UBI events; give them"),
        (["--out", "r.parquet", "--master", "yarn"], "--master is Spark's; give it with --engine"),
        (
            ["--out", "r.parquet", "--engine", "spark", "--memory", "1GB"],
            "--memory is DuckDB's; the memory of Spark is set where it runs",
        ),
        (["--out", "r.parquet", "--memory", "lots"], "memory is a size such as 4GB, not 'lots'"),
    ],
)
def test_wrong_words_are_answered_in_one_sentence(log, words, sentence):
    done = run(log, *words)
    assert isinstance(done.exception, DualrankError)
    assert sentence in str(done.exception)


def test_events_are_kept_apart_and_summed_up_in_the_answer(log, tmp_path):
    table = pa.table({**CLEAN, "session_id": CLEAN["visit"], "bought": [0, 2, None]})
    pyarrow.csv.write_csv(table, log)
    out = tmp_path / "r.parquet"
    options = ("--event", "purchase", "--column", "purchase=bought", "--out", out)
    done = run(log, *options)
    assert done.exit_code == 0, done.output
    assert "besides clicks: purchase 2" in done.output
    assert json.loads(run(log, *options, "--json").stdout)["events"] == {"purchase": 2.0}
    weighed = run(log, "--event", "purchase=5", "--out", out)
    assert isinstance(weighed.exception, DualrankError)
    assert "amounts are kept apart, and weighed when a ranker is trained" in str(weighed.exception)
    missing = run(log, "--event", "cart", "--out", out)
    assert "there is no column 'cart' of events; the log has" in str(missing.exception)
    assert str(missing.exception).endswith("another name is given as --column cart=NAME")


def test_a_log_of_clicks_alone_is_called_that(tmp_path, caplog):
    clicked = {**CLEAN, "session_id": CLEAN["visit"], "clicked": [1, 1, 1]}
    pq.write_table(pa.table(clicked), tmp_path / "log.parquet")
    assert run(tmp_path / "log.parquet", "--out", tmp_path / "r.parquet").exit_code == 0
    assert "every row of this log is a click; what was displayed and not clicked" in caplog.text
    for ask in (dr.diagnose, dr.estimate_propensities, dr.judge):
        with pytest.raises(DataError, match="every document that the log shows was clicked"):
            ask(tmp_path / "r.parquet")


def test_gaps_of_a_log_of_clicks_alone_are_not_for_partial_lists(tmp_path):
    clicked = {**CLEAN, "session_id": CLEAN["visit"], "clicked": [1, 1, 1], "position": [2, 4, 7]}
    pq.write_table(pa.table(clicked), tmp_path / "log.parquet")
    said = str(run(tmp_path / "log.parquet", "--out", tmp_path / "r.parquet").exception)
    assert said.endswith("every row is a click; log what was displayed and not clicked, too")


def test_clients_who_never_clicked_did_not_click_most(tmp_path):
    silent = {**CLEAN, "session_id": CLEAN["visit"], "clicked": [0, 0, 0]}
    pq.write_table(pa.table(silent), tmp_path / "log.parquet")
    done = run(tmp_path / "log.parquet", "--out", tmp_path / "r.parquet")
    assert "clicked most" not in done.output


def test_a_log_is_cut_into_shards_with_its_features(log, tmp_path):
    features = {"query_id": ["q", "q"], "doc_id": ["x", "y"], "age": [1.0, 2.0]}
    pq.write_table(pa.table(features), tmp_path / "features.parquet")
    out = tmp_path / "log"
    words = ("--column", "session_id=visit", "--shards", 2, "--out", out)
    done = run(log, *words, "--features", tmp_path / "features.parquet")
    assert done.exit_code == 0, done.output
    assert "2 shards" in done.output
    assert "with 1 feature" in done.output
    again = json.loads(run(log, *words, "--json").stdout)
    assert (again["sessions"], again["shards"], again["features"]) == (2, 2, None)
    assert dr.read_log(out).sessions == 2
    inside = run(out / "00000" / "log.parquet", "--shards", 2, "--out", out)
    assert f"this would write over {out / '00000' / 'log.parquet'}" in str(inside.exception)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    refused = run(log, *words[:-1], tmp_path / "mine")
    assert "this folder holds something that this command did not write" in str(refused.exception)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--append", "days", "--shards", "2"], "shards are written into a folder of their own"),
        (["--out", "r.parquet", "--features", "f.parquet"], "features lie beside the shards of a"),
        (["--out", "r.parquet", "--shards", "2"], "r.parquet: the name of a file; shards are"),
    ],
)
def test_shards_that_go_nowhere_are_refused(log, words, sentence):
    done = run(log, *words)
    assert isinstance(done.exception, DualrankError)
    assert sentence in str(done.exception)
