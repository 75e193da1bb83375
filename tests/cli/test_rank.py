"""`dualrank rank` and `dualrank evaluate` on files of any size."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from dualrank.data.scaling import Scaler
from dualrank.learning.model import Model
from dualrank.rankers.network import Linear


def features(count, queries=20, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2)).astype(np.float32)
    return pa.table(
        {
            "query_id": (np.arange(count) % queries).astype(str),
            "doc_id": np.arange(count).astype(str),
            "a": x[:, 0],
            "b": x[:, 1],
            "grade": rng.integers(0, 3, count).astype(np.float32),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("rank")
    ranker = Linear().build(2)
    ranker.weights[0][:] = torch.tensor([[1.0, -0.5]])
    scaler = Scaler.fit(np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32))
    Model(ranker, scaler, feature_names=("a", "b"), kind="linear").save(root / "model")
    pq.write_table(features(2_000), root / "f.parquet")
    (root / "f").mkdir()
    for number in range(3):
        pq.write_table(features(2_000).slice(number * 700, 700), root / "f" / f"{number}.parquet")
    return root


def test_runs_in_parts_are_measured_as_the_model_is(folder, tmp_path, command):
    run = tmp_path / "run"
    code, out, err = command("rank", folder / "model", folder / "f", "--out", run, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"run": str(run), "queries": 20, "documents": 2_000}
    assert [part.name for part in run.iterdir()] == ["part-00000.parquet"]
    command("rank", folder / "model", folder / "f.parquet", "--out", tmp_path / "one.parquet")
    assert (run / "part-00000.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()
    found = [
        json.loads(command("evaluate", ranking, folder / "f", "--json")[1])
        for ranking in (folder / "model", run, run / "part-*.parquet", tmp_path / "one.parquet")
    ]
    assert all(each == found[0] for each in found)
    code, out, _ = command("evaluate", run, folder / "f", "--against", run, "--metrics", "map")
    assert code == 0
    assert command("rank", folder / "model", folder / "f", "--out", run)[0] == 0, "its own"


def test_a_pattern_is_read_and_less_memory_may_be_given(folder, tmp_path, command):
    words = ("rank", folder / "model", folder / "f" / "[0-9].parquet", "--out", tmp_path / "r.csv")
    assert command(*words, "--memory", "100MB")[0] == 0
    code, _, err = command(*words, "--memory", "much", "--force")
    assert (code, err) == (2, "dualrank: memory is a size such as 4GB, not 'much'\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["f.parquet", "--out", "r.xml"],
            "a run is written as .parquet, .csv, .run, .trec or .txt",
        ),
        (["f.parquet", "--out", "f.parquet"], "this would write over"),
        (["f", "--out", "f"], "this would write over"),
        (["f.parquet", "--out", "model"], "this would write over"),
        (["f.parquet", "--out", "."], "this would write over"),
        (["nowhere", "--out", "r.csv"], "nowhere"),
        (["no*.parquet", "--out", "r.csv"], "no file fits this pattern"),
        (["f.parquet", "--out", "r.csv", "--master", "yarn"], "--master is Spark's; give it with"),
        (["f.parquet", "--out", "r", "--engine", "spark", "--memory", "1GB"], "is DuckDB's; the"),
    ],
)
def test_what_cannot_be_ranked_is_one_sentence(folder, command, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    code, _, err = command("rank", "model", *words)
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


def test_a_folder_of_something_else_stays_even_with_force(folder, tmp_path, command):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    words = ("rank", folder / "model", folder / "f", "--out", tmp_path / "mine", "--force")
    code, _, err = command(*words)
    assert code == 2
    assert "holds something else than a run, which would be replaced" in err
    assert (tmp_path / "mine" / "notes.txt").exists()


def test_without_spark_its_name_is_said(folder, tmp_path, command, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pyspark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    words = ("rank", folder / "model", folder / "f", "--out", tmp_path / "r", "--engine", "spark")
    code, _, err = command(*words)
    assert code == 2
    assert "the engine spark needs packages that are not installed" in err
    assert "pip install pyspark" in err


HALFWAY = """
import time
from dualrank.cli.app import main
from dualrank.data.score_order import ScoreOrder
ranked = ScoreOrder.ranked

def stop_halfway(order):
    yield from ranked(order)
    print("halfway", flush=True)
    time.sleep(600)

ScoreOrder.ranked = stop_halfway
main()
"""


@pytest.mark.parametrize(
    ("stopped", "code", "out"), [(signal.SIGINT, 130, "run.parquet"), (signal.SIGTERM, 143, "run")]
)
def test_a_command_that_is_stopped_leaves_nothing(folder, tmp_path, stopped, code, out):
    """Neither half a run nor temporary files."""
    scratch, here = tmp_path / "scratch", tmp_path / "here"
    scratch.mkdir()
    here.mkdir()
    words = ["rank", folder / "model", folder / "f.parquet", "--out", here / out, "--force"]
    with subprocess.Popen(
        [sys.executable, "-c", HALFWAY, *map(str, words)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout.readline() == b"halfway\n"
            assert list(scratch.iterdir()) != []
            process.send_signal(stopped)
            process.wait()
        finally:
            process.kill()
    assert process.returncode == code
    assert list(here.iterdir()) == []
    assert list(scratch.iterdir()) == []
