"""Commands on a folder that `dualrank reduce --shards` wrote."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest

from dualrank.clicks.sampling import sample_log
from dualrank.data.interventions import shuffle_lists
from dualrank.data.shards import whole_shards
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.storage import write_table


@pytest.fixture
def logs(command, dataset, lists, user, tmp_path):
    """A reduced log in one file, and in four shards with features beside them."""
    rng = np.random.default_rng(4)
    log = sample_log(dataset, shuffle_lists(lists, 3, rng), user, 4_000, rng)
    table = log.to_table(named_by=dataset)
    _, session = np.unique(table["session_id"].to_numpy(), return_inverse=True)
    device = pa.array(np.where(session % 2, "phone", "desk"))
    write_table(tmp_path / "clicks.parquet", table.append_column("device", device))
    ids = dataset.catalogue
    queries = np.array(ids.query_ids)[ids.query_of_document]
    features = {f"f{n}": column for n, column in enumerate(dataset.features.T)}
    named = {"query_id": queries.astype(str), "doc_id": np.array(ids.doc_ids).astype(str)}
    write_table(tmp_path / "features.parquet", pa.table(named | features))
    words = ("reduce", tmp_path / "clicks.parquet", "--context", "device")
    assert command(*words, "--out", tmp_path / "log.parquet")[0] == 0
    shards = ("--features", tmp_path / "features.parquet", "--shards", 4)
    assert command(*words, *shards, "--out", tmp_path / "log")[0] == 0
    return tmp_path / "log.parquet", tmp_path / "log"


def both(command, logs, *words):
    found = []
    for log in logs:
        code, out, err = command(*(log if word == "LOG" else word for word in words), "--json")
        assert code == 0, err
        found.append(json.loads(out))
    return found


def test_curves_are_those_of_the_log_in_one_file(command, logs):
    whole, parts = both(command, logs, "propensity", "LOG", "--methods", "harvest-all-pairs,pbm")
    for method, curve in whole["estimates"].items():
        found = parts["estimates"][method]
        assert found["examination"] == pytest.approx(curve["examination"], rel=1e-8)
        assert (found["support"], found["sessions"]) == (curve["support"], curve["sessions"])


def test_click_models_are_those_of_the_log_in_one_file(command, logs, tmp_path):
    whole, parts = both(command, logs, "clicks", "fit", "LOG", "--model", "dbn")
    for value in ("sessions", "pairs", "iterations", "log_likelihood", "perplexity_per_rank"):
        assert parts[value] == pytest.approx(whole[value])
    words = ("clicks", "compare", "LOG", "--models", "pbm,ubm", "--held-out", "device=desk")
    whole, parts = both(command, logs, *words)
    assert parts["judged_on"] == whole["judged_on"]
    for one, other in zip(parts["models"], whole["models"], strict=True):
        assert one["log_likelihood"] == pytest.approx(other["log_likelihood"])
        assert one["behind_error"] == pytest.approx(other["behind_error"], abs=1e-9)
    tables = []
    for number, log in enumerate(logs):
        out = tmp_path / f"{number}.csv"
        assert command("clicks", "relevance", log, "--model", "pbm", "--out", out)[0] == 0
        with out.open() as file:
            rows = {(row["query_id"], row["doc_id"]): row for row in csv.DictReader(file)}
        tables.append(rows)
    assert tables[0].keys() == tables[1].keys()
    for pair, row in tables[0].items():
        assert float(tables[1][pair]["relevance"]) == pytest.approx(float(row["relevance"]))


def test_a_model_that_was_fitted_on_shards_is_kept_and_read(command, logs, tmp_path):
    out = tmp_path / "model.parquet"
    code, text, _ = command("clicks", "fit", logs[1], "--model", "ubm", "--out", out)
    assert code == 0
    assert "on 4 shards, 4000 sessions" in text
    again = ("clicks", "relevance", out, "--out", tmp_path / "r.parquet", "--json")
    assert json.loads(command(*again)[1])["model"] == "ubm"


def test_a_diagnosis_says_how_much_it_looked_at(command, logs, tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.diagnostics.trained_pair.STEPS", 20)
    shards = ShardedLog.open(logs[1]).shards
    room = sum(map(whole_shards.bytes_of, shards[:2]))
    monkeypatch.setattr(
        "dualrank.diagnostics.diagnosis.sample_shards",
        lambda log, _: whole_shards.sample_shards(log, room),
    )
    code, text, _ = command("diagnose", logs[1], "--context", "device", "--out", tmp_path / "d")
    assert code == 0
    sessions = sum(shard.sessions for shard in shards[:2])
    said = f"Looked at 2 of 4 shards, {sessions:,} of 4,000 sessions"
    assert said in " ".join(text.split())
    assert said in (tmp_path / "d" / "diagnosis.html").read_text()
    found = json.loads((tmp_path / "d" / "diagnosis.json").read_text())
    assert found["looked_at"].startswith(said)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("propensity", "LOG", "--features", "f.parquet"), "has its features beside it"),
        (("diagnose", "LOG", "--features", "f.parquet"), "has its features beside it"),
        (("diagnose", "LOG", "--context", "age"), "no column 'age' beside the clicks; it has dev"),
        (("propensity", "LOG", "--first-position", 0), "this log is reduced already"),
        (("clicks", "compare", "LOG", "--held-out", "device=car"), "column 'device' holds"),
        (("interleave", "read", "LOG"), "a reduced log does not tell which arm"),
    ],
)
def test_what_goes_wrong_is_one_sentence(command, logs, words, sentence):
    code, out, err = command(*(logs[1] if word == "LOG" else word for word in words))
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("propensity",), ("clicks", "fit"), ("diagnose",)])
def test_a_damaged_shard_is_found_before_anything_is_counted(command, logs, words):
    path = logs[1] / "00002" / "counts.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    code, out, err = command(*words, logs[1])
    assert (code, out) == (2, "")
    assert "00002/counts.npy: damaged" in err


def test_commands_that_load_take_shards_that_fit(command, logs, tmp_path, monkeypatch):
    code, out, _ = command("judge", logs[1], "--out", tmp_path / "j.qrels", "--json")
    assert code == 0
    assert json.loads(out)["pairs"] > 0
    assert command("plan-swaps", logs[1])[0] == 0
    monkeypatch.setattr("dualrank.data.memory_limits.memory_of_machine", lambda: 1_000)
    code, _, err = command("plan-swaps", logs[1])
    assert code == 2
    assert "all of its shards at once would take" in err
    assert "a shard alone is a log too" in err
    assert "log/00000/log.parquet" in err
