"""Trees at the command line: all that networks do, and features that are missing."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.data.log.long import write_long_log

QUERIES, DOCUMENTS = 120, 8
QUICK = ["--ranker", "trees", "--steps", 20, "--leaves", 5, "--shrinkage", 5, "--validation", 0.2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log, and features of which a fifth is missing."""
    path = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(QUERIES * DOCUMENTS, 3)).astype(np.float32)
    grades = np.clip(np.round(X[:, 0] + X[:, 1] + 1), 0, 4)
    names = [f"d{row}" for row in range(len(X))]
    queries = np.repeat(np.arange(QUERIES), DOCUMENTS).astype(str)
    data = Dataset.from_arrays(X, queries, grades, doc_ids=names, max_grade=4)
    lists = top_lists(data, X[:, 0] + rng.normal(size=len(X)), 6)
    log = sample_log(data, lists, PositionBasedUser(), 20_000, 0)
    write_long_log(log, path / "log.parquet", data.catalogue, rng)
    columns = {"query_id": queries, "doc_id": names, "grade": grades}
    for number, name in enumerate(("bm25", "clicks", "age")):
        values = pa.array(X[:, number], mask=rng.random(len(X)) < (0.2 if number else 0))
        columns[name] = values
    pq.write_table(pa.table(columns), path / "features.parquet")
    return path


@pytest.fixture(scope="module")
def model(folder, tmp_path_factory):
    """Trained as users do who say nothing but what they have."""
    import sys
    from unittest.mock import patch

    from dualrank.cli.app import main

    out = tmp_path_factory.mktemp("model")
    words = ["train", folder / "log.parquet", "--features", folder / "features.parquet"]
    argv = ["dualrank", *map(str, [*words, "--out", out, *QUICK])]
    with patch.object(sys, "argv", argv), pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    return out


def test_auto_trains_trees_with_a_twin_a_diagnosis_and_a_report(model):
    manifest = json.loads((model / "manifest.json").read_text())
    assert manifest["ranker"] == {"kind": "trees", "inputs": 3}
    assert manifest["scaler"]["kind"] == "none"
    assert manifest["training"]["auto"]["weights"]
    assert manifest["training"]["settings"]["steps"] == 20
    assert manifest["training"]["settings"]["learning_rate"] == 0.05
    for name in ("report.html", "diagnosis.json", "twin/manifest.json"):
        assert (model / name).exists(), name


def test_trees_rank_and_are_evaluated_with_features_missing(model, folder, command, tmp_path):
    data = folder / "features.parquet"
    assert command("rank", model, data, "--out", tmp_path / "scores.parquet")[0] == 0
    scores = pq.read_table(tmp_path / "scores.parquet")["score"].to_numpy()
    assert np.isfinite(scores).all()
    code, out, _ = command("evaluate", model, data, "--metrics", "ndcg@5", "--json")
    assert code == 0
    assert json.loads(out)["ndcg@5"]["value"] > 0.75


@pytest.mark.parametrize("target", ["onnx", "opensearch", "solr", "xgboost", "lightgbm"])
def test_what_auto_made_of_several_forests_goes_to_engines(
    model, command, tmp_path, target, folder
):
    words = ("export", model, "--to", target, "--out", tmp_path / "out.json")
    code, out, error = command(*words, "--features", folder / "features.parquet")
    assert (code, error) == (0, "")
    assert (tmp_path / "out.json").stat().st_size > 1_000
    assert "differ" in out


def test_missing_values_given_to_a_network_are_named_with_what_to_do(folder, command, tmp_path):
    words = ["train", folder / "log.parquet", "--features", folder / "features.parquet"]
    code, _, error = command(*words, "--out", tmp_path / "m", "--steps", 5)
    assert code == 2
    assert "feature 'clicks' is missing in" in error
    assert "a ranker of kind dnn needs all values: fill them, or train trees" in error
    assert "Traceback" not in error


def test_a_diagnosis_without_a_model_does_with_features_missing(folder, command):
    words = ("diagnose", folder / "log.parquet", "--features", folder / "features.parquet")
    code, out, _ = command(*words, "--json")
    assert code == 0
    assert json.loads(out)["verdict"]


def test_a_model_file_of_another_library_is_not_taken_for_a_model(command, tmp_path, folder):
    (tmp_path / "lightgbm.txt").write_text("tree\nversion=v4\n")
    words = ("rank", tmp_path / "lightgbm.txt", folder / "features.parquet")
    code, _, error = command(*words, "--out", tmp_path / "scores.parquet")
    assert code == 2
    assert "models of other libraries are not read" in error
    assert error.count("\n") == 1


def test_wrong_settings_of_trees_are_told(command, folder, tmp_path):
    words = ["train", folder / "log.parquet", "--features", folder / "features.parquet"]
    code, _, error = command(*words, "--out", tmp_path / "m", "--ranker", "trees", "--leaves", 1)
    assert (code, error) == (2, "dualrank: a tree has at least 2 leaves, not 1\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--ranker", "trees", "--optimizer", "adagrad", "--scaling", "log"],
            "a ranker of kind trees makes no use of --optimizer adagrad, --scaling log",
        ),
        (["--leaves", 5], "--leaves says nothing to a ranker of kind dnn"),
        (["--ranker", "trees", "--activation", "relu"], "--activation says nothing to a ranker of"),
    ],
)
def test_options_that_would_change_nothing_are_refused(
    command, folder, tmp_path, options, sentence
):
    words = ["train", folder / "log.parquet", "--features", folder / "features.parquet"]
    code, _, error = command(*words, "--out", tmp_path / "m", *options)
    assert code == 2
    assert sentence in error
