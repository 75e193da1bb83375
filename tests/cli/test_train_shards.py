"""`dualrank train` on a folder of shards."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank import workflow
from dualrank.data.features import read_features
from dualrank.data.log.read_log import read_log
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.data.shards.splitting import write_shards
from dualrank.errors import SettingsError
from dualrank.learning.model import Model
from dualrank.learning.sharded import query_sample

QUERIES, DOCUMENTS, SESSIONS = 60, 6, 4_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """features.parquet, and the folder `shards` with them and a log of users who tire."""
    path = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(QUERIES * DOCUMENTS, 3))
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    names = np.array([f"d{row}" for row in range(len(X))])
    features = {f"f{i}": X[:, i] for i in range(3)}
    columns = {"query_id": query.astype(str), "doc_id": names, "grade": (X[:, 0] > 0.5).astype(int)}
    pq.write_table(pa.table({**columns, **features}), path / "judged.parquet")
    del columns["grade"]
    pq.write_table(pa.table({**columns, **features}), path / "features.parquet")
    asked = rng.integers(QUERIES, size=SESSIONS)
    shown = np.array([rng.permutation(DOCUMENTS) for _ in range(3)])[rng.integers(3, size=SESSIONS)]
    rows = (asked[:, None] * DOCUMENTS + shown).ravel()
    position = np.tile(np.arange(1, DOCUMENTS + 1), SESSIONS)
    log = pa.table(
        {
            "session_id": np.repeat(np.arange(SESSIONS), DOCUMENTS),
            "query_id": query[rows].astype(str),
            "doc_id": names[rows],
            "position": position,
            "clicked": rng.random(len(rows)) < (0.1 + 0.7 * (X[rows, 0] > 0.5)) / position,
        }
    )
    data = read_features(path / "features.parquet")
    read = read_log(log, data)
    read = type(read)(**{**vars(read), "catalogue": data.catalogue})
    write_shards(read, path / "shards", 4, data)
    return path


@pytest.fixture
def words(folder, tmp_path):
    """A short training of a small network by dual learning."""
    return ["train", folder / "shards", "--out", tmp_path / "m", "--steps", 40,
            "--method", "dla"]  # fmt: skip


def test_a_folder_of_shards_is_trained_on_without_features_beside_it(words, command, tmp_path):
    code, out, err = command(*words)
    assert code == 0, err
    assert "dla on ShardedLog(4 shards, 4000 sessions)" in out
    assert "better than" in out or "clearly ahead" in out
    model = Model.load(tmp_path / "m")
    assert model.feature_names == ("f0", "f1", "f2")
    assert model.training["shards"]["count"] == 4
    assert {"report.html", "diagnosis.json", "twin", "manifest.json"} <= set(
        os.listdir(tmp_path / "m")
    )
    assert not list((tmp_path / "m").glob("checkpoint*"))


def test_what_is_only_a_sample_is_called_so(words, command, tmp_path, monkeypatch):
    monkeypatch.setattr(query_sample, "MOST_LISTS", 60)
    code, out, err = command(*words)
    assert code == 0, err
    shards = Model.load(tmp_path / "m").training["shards"]
    said = (
        "Compared, checked and diagnosed by a sample of the 4 shards: "
        f"{shards['sampled_sessions']:,} of 4,000 sessions"
    )
    assert said in out
    assert said in (tmp_path / "m" / "report.html").read_text()
    diagnosis = json.loads((tmp_path / "m" / "diagnosis.json").read_text())
    assert f"{shards['sampled_sessions']:,} of 4,000 sessions" in diagnosis["looked_at"]


def test_judged_queries_keep_the_best_ranker(words, folder, command):
    code, out, err = command(*words, "--validation", folder / "judged.parquet", "--no-diagnosis")
    assert code == 0, err
    assert "ndcg@10 of 60 judged queries" in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--features", "{folder}/features.parquet"], "a log in shards has the features of its"),
        (["--ranker", "trees"], "a ranker of kind trees takes all lists at once"),
        (["--method", "affine"], "method affine makes the labels of all lists before the first"),
        (["--remember"], "are not kept with a model; train without --remember"),
        (["--first-position", 0], "shards: this log is reduced already; columns, positions"),
        (["--context", "device"], "shards: the log has no column 'device' beside the clicks; it h"),
        (["--event", "purchase=2"], "weighted events are brought to the scale of clicks"),
    ],
)
def test_what_shards_cannot_be_asked_for_is_refused_in_a_sentence(
    words, folder, command, tmp_path, options, sentence
):
    options = [str(each).format(folder=folder) for each in options]
    code, _, err = command(*words, *options)
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_what_changes_nothing_about_shards_is_taken_by_every_command_alike(words, command):
    code, _, err = command(*words, "--max-bad-share", 0.01, "--partial", "--no-diagnosis")
    assert code == 0, err


def test_a_log_that_is_not_in_shards_needs_features(folder, command, tmp_path):
    path = folder / "shards" / "00000" / "log.parquet"
    code, _, err = command("train", path, "--out", tmp_path / "m")
    assert (code, "beside it: give --features" in err) == (2, True)
    # A shard alone is a log.
    words = ["--features", folder / "features.parquet", "--out", tmp_path / "m", "--steps", 10]
    code, _, err = command("train", path, *words, "--method", "naive", "--no-diagnosis")
    assert code == 0, err


def test_python_trains_on_shards_and_says_where_to_write(folder, tmp_path):
    log = ShardedLog.open(folder / "shards")
    given = {"method": "naive", "steps": 10, "diagnosis": False}
    trained = workflow.train(log, out=tmp_path / "m", **given)
    assert trained.log is log
    with pytest.raises(SettingsError, match="say where the model is to be written"):
        workflow.train(log, **given)


def test_two_workers_write_one_model(words, tmp_path):
    """With all that comes after the workers have parted: a twin, and a diagnosis with it."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    given = [*map(str, words), "--json"]
    ended = subprocess.run([*run, "-m", "dualrank", *given], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    answered = json.loads(ended.stdout[ended.stdout.index("{") :])
    assert answered["drawn"] == 40 * 256
    assert answered["twin"]["leads"]["dla"]["queries"] == 6
    assert Model.load(tmp_path / "m" / "twin").training["method"] == "naive"
