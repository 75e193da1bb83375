"""`dualrank diagnose` as a new user would run it, with good input and with bad."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.generator import generate_splits, with_document_ids
from dualrank.data.interventions import join_lists
from dualrank.data.letor.writer import write_letor
from dualrank.data.lists import top_lists


@pytest.fixture
def command(command, monkeypatch):
    """`dualrank diagnose …` with rankers trained briefly."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("dualrank.diagnostics.trained_pair.STEPS", 100)
    return lambda *words: command("diagnose", *words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Features, and logs of three rankers and of one over them."""
    here = tmp_path_factory.mktemp("diagnose")
    data = with_document_ids(generate_splits("tiny").train)
    write_letor(data, here / "train.txt")
    rng = np.random.default_rng(0)

    def ranked():
        return top_lists(data, data.grades + 2 * rng.normal(size=data.document_count), 10)

    for name, lists in (("three", join_lists([ranked() for _ in range(3)])), ("one", ranked())):
        table = sample_log(data, lists, PositionBasedUser(), 15_000, rng).to_table(data)
        device = np.array(["desk", "phone"])[table["session_id"].to_numpy() % 2]
        table = table.append_column("device", pa.array(device))
        pq.write_table(table, here / f"{name}.parquet")
    return here


def test_the_verdict_and_every_point_are_printed(command, folder):
    code, out, _ = command(folder / "three.parquet")
    assert code == 0
    assert out.startswith("Use harvested propensities.")
    for name in ("connectivity", "independent clicks", "trust in the top", "drift", "traffic"):
        assert name in out


def test_with_features_learning_is_asked_about(command, folder):
    code, out, _ = command(folder / "three.parquet", "--features", folder / "train.txt", "--json")
    assert code == 0
    found = {point["name"]: point for point in json.loads(out)["points"]}
    assert found["joint learning"]["status"] in ("good", "warning")
    assert "spearman" in found["logging ranker"]["numbers"]
    assert len(found["curves"]["numbers"]["learned"]["examination"]) == 10


def test_advice_names_options_as_they_are_typed(command, folder, tmp_path):
    rows = pq.read_table(folder / "three.parquet")
    machine = rows["session_id"].to_numpy() % 9 == 0
    clicked = pa.array(rows["clicked"].to_numpy() | machine)
    rows = rows.set_column(rows.column_names.index("clicked"), "clicked", clicked)
    pq.write_table(rows, tmp_path / "machines.parquet")
    _, out, _ = command(tmp_path / "machines.parquet")
    assert "--max-clicks leaves out" in " ".join(out.split())
    assert "max_clicks" not in out
    # What is said of features that are not there is said once.
    assert out.count("→ Give the features of the documents.") == 1


def test_the_swaps_that_it_asks_for_are_a_command_to_type(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    _, out, _ = command("one.parquet")
    said = " ".join(out.split())
    assert "in 5% of sessions for about" in said
    assert "see dualrank plan-swaps one.parquet --precision 10%." in said
    assert "plan_swaps" not in said


def test_strict_fails_where_a_point_failed(command, folder):
    assert command(folder / "one.parquet", "--strict")[0] == 1
    assert command(folder / "one.parquet")[0] == 0
    assert command(folder / "three.parquet", "--strict")[0] == 0


def test_strict_fails_where_no_correction_is_fit(command, folder):
    """With features no point need fail, and still neither way is open."""
    words = (folder / "one.parquet", "--features", folder / "train.txt", "--strict", "--json")
    code, out, _ = command(*words)
    assert json.loads(out)["verdict"] == "collect some swaps first"
    assert code == 1


def test_contexts_are_compared(command, folder):
    _, out, _ = command(folder / "three.parquet", "--context", "device", "--json")
    drift = next(p for p in json.loads(out)["points"] if p["name"] == "drift")
    assert drift["status"] == "good"
    assert drift["numbers"]["comparisons"][0]["column"] == "device"


def test_files_are_written(command, folder, tmp_path):
    code, out, _ = command(folder / "one.parquet", "--out", tmp_path / "found")
    assert code == 0
    assert "Beside it: diagnosis.json" in out
    content = json.loads((tmp_path / "found" / "diagnosis.json").read_text())
    assert content["verdict"] == "collect some swaps first"
    assert "Diagnosis of one.parquet" in (tmp_path / "found" / "diagnosis.html").read_text()


def test_help_has_an_example(command):
    code, out, _ = command("--help")
    assert code == 0
    assert "dualrank diagnose clicks.parquet" in out
    assert "--strict" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["missing.parquet"], "missing.parquet: there is no such file"),
        (["{one}", "--features", "missing.txt"], "missing.txt"),
        (["{one}", "--context", "country"], "there is no context column 'country'"),
        (["{text}"], "a log is a .parquet"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(command, folder, tmp_path, words, sentence):
    text = tmp_path / "log.txt"
    text.write_text("hello")
    given = [word.format(one=folder / "one.parquet", text=text) for word in words]
    code, out, err = command(*given)
    assert code == 2
    assert sentence in err
    assert err.strip().count("\n") == 0
    assert out == ""


@pytest.mark.skipif("DUALRANK_DATA" not in os.environ, reason="DUALRANK_DATA is not set")
def test_the_yandex_log_can_be_harvested(command, tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = Path(os.environ["DUALRANK_DATA"]) / "yandex_clicks" / "sessions.tsv.zst"
    lines = zstandard.open(path, "rt").read().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    documents = [row[2].replace(" ", ",").split(",") for row in rows]
    clicks = [[int(c) for c in row[3].replace(",", "").replace(" ", "")] for row in rows]
    table = pa.table(
        {
            "session_id": np.repeat(np.arange(len(rows)), 10),
            "query_id": np.repeat([row[1] for row in rows], 10),
            "doc_id": np.concatenate(documents),
            "position": np.tile(np.arange(1, 11), len(rows)),
            "clicked": np.concatenate(clicks),
        }
    )
    pq.write_table(table, tmp_path / "yandex.parquet")
    code, out, _ = command(tmp_path / "yandex.parquet", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["verdict"] == "use harvested propensities"
    points = {point["name"]: point for point in found["points"]}
    assert points["connectivity"]["numbers"]["share_of_pairs_at_two_positions"] > 0.5
    assert points["independent clicks"]["numbers"]["further_down"]["ratio"] > 1.5
