"""`dualrank train` on a small log: what it refuses early, writes beside the model, and shares."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from dualrank.errors import StoppedError
from dualrank.learning.methods import METHODS
from dualrank.learning.model import Model
from dualrank.storage import writing_alone

QUERIES, DOCUMENTS, SESSIONS = 60, 6, 4_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """features.parquet with grades, and log.parquet, of users who look less far down."""
    path = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(QUERIES * DOCUMENTS, 3))
    grade = (X[:, 0] > 0.5).astype(int)
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    names = [f"d{row}" for row in range(len(X))]
    columns = {"query_id": query.astype(str), "doc_id": names, "grade": grade}
    features = {f"f{i}": X[:, i] for i in range(3)}
    pq.write_table(pa.table({**columns, **features}), path / "features.parquet")
    swapped = {name: features[name] for name in ("f2", "f0", "f1")}
    pq.write_table(pa.table({**columns, **swapped}), path / "swapped.parquet")
    asked = rng.integers(QUERIES, size=SESSIONS)
    shown = np.array([rng.permutation(DOCUMENTS) for _ in range(3)])[rng.integers(3, size=SESSIONS)]
    rows = (asked[:, None] * DOCUMENTS + shown).ravel()
    position = np.tile(np.arange(1, DOCUMENTS + 1), SESSIONS)
    clicked = rng.random(len(rows)) < (0.1 + 0.7 * grade[rows]) / position
    log = {
        "session_id": np.repeat(np.arange(SESSIONS), DOCUMENTS),
        "query_id": query[rows].astype(str),
        "doc_id": np.array(names)[rows],
        "position": position,
        "clicked": clicked,
    }
    pq.write_table(pa.table(log), path / "log.parquet")
    return path


@pytest.fixture
def words(folder, tmp_path):
    """A short training of a small network by dual learning."""
    return ["train", folder / "log.parquet", "--features", folder / "features.parquet",
            "--out", tmp_path / "m", "--hidden", 4, "--steps", 40, "--method", "dla"]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--method", "ipw"], "method ipw needs a propensity"),
        (
            ["--method", "dla", "--ranker", "svm"],
            "so that nothing is learned beside it as by dla; use --method ipw or --method naive",
        ),
        (
            ["--method", "naive", "--click-model", "dbn"],
            "method naive takes no click model; click-model does",
        ),
        (
            ["--method", "naive", "--position-model", "network"],
            "method naive takes no position model; grounded, likelihood and dla do",
        ),
        (["--position-model", "contextual"], "takes one --context"),
        (
            ["--method", "grounded", "--elu-output"],
            "method grounded makes one ranker of several: scores that go through an elu do not",
        ),
        (["--method", "click-model", "--click-model", "x"], "unknown click model 'x'"),
        (["--method", "auto", "--validation", "0"], "needs something to choose by"),
        (["--validation", "1.5"], "validation is a share between 0 and 1, not 1.5"),
        (["--validation", "nowhere.txt"], "no file 'nowhere.txt'"),
        (["--scaling", "loud"], "the scaling is 'loud'"),
        (["--hidden", "a"], "--hidden takes whole numbers separated by commas"),
        (["--device", "gpu"], "device is auto, cpu, cuda or cuda:n, not 'gpu'"),
    ],
)
def test_options_that_contradict_each_other_are_refused_before_data_is_read(
    command, tmp_path, options, sentence
):
    """The features are no file at all, which nobody has noticed yet."""
    words = ["train", "no.parquet", "--features", tmp_path / "no.txt", "--out", tmp_path / "m"]
    code, out, err = command(*words, *options)
    assert code == 2
    assert sentence in err
    assert out == ""
    assert err.count("\n") == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_one_sentence(command, words):
    code, _, err = command(*words, "--device", "cuda")
    assert code == 2
    assert err.startswith("dualrank: device is cuda, but no CUDA GPU was found")
    assert err.count("\n") == 1


def test_event_files_hold_the_loss_the_curve_and_the_validation(command, words, tmp_path):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert command(*words, "--tensorboard", "--no-diagnosis")[0] == 0
    for name in ("model", "twin"):
        events = reading.EventAccumulator(str(tmp_path / "m" / "tensorboard" / name)).Reload()
        scalars = events.Tags()["scalars"]
        assert {"loss", "validation"} <= set(scalars)
        assert ("examination/06" in scalars) == (name == "model")
        steps = [event.step for event in events.Scalars("loss")]
        assert steps == [20, 40]
        assert all(np.isfinite(event.value) for event in events.Scalars("loss"))
    learned = Model.load(tmp_path / "m").propensity.examination
    events = reading.EventAccumulator(str(tmp_path / "m" / "tensorboard" / "model")).Reload()
    assert events.Scalars("examination/06")[-1].value == pytest.approx(learned[5], rel=1e-5)


def test_without_tensorboard_one_sentence_says_how_to_get_it(command, words, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    code, _, err = command(*words, "--tensorboard")
    assert code == 2
    assert "TensorBoard needs packages that are not installed" in err
    assert "pip install tensorboard" in err


def test_features_are_evaluated_and_ranked_by_the_names_that_the_model_knows(
    command, words, folder, tmp_path
):
    assert command(*words, "--no-twin", "--no-diagnosis")[0] == 0
    told = []
    for name in ("features", "swapped"):
        code, out, _ = command("evaluate", tmp_path / "m", folder / f"{name}.parquet", "--json")
        assert code == 0
        told.append(json.loads(out))
    assert told[0] == told[1]
    assert told[0]["ndcg@10"]["value"] > 0.7


def test_judged_queries_are_validated_by_the_names_of_the_features(command, words, folder):
    values = []
    for name in ("features", "swapped"):
        judged = folder / f"{name}.parquet"
        code, out, _ = command(
            *words, "--no-twin", "--no-diagnosis", "--validation", judged, "--json"
        )
        assert code == 0
        values.append(json.loads(out)["best_value"])
    assert values[0] == values[1]


def test_a_damaged_checkpoint_is_refused_and_a_fresh_start_goes_past_it(command, words, tmp_path):
    checkpoint = tmp_path / "m" / "checkpoint.safetensors"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"what a broken disk gives back")
    quick = [*words, "--no-twin", "--no-diagnosis"]
    code, _, err = command(*quick)
    assert code == 2
    assert f"{checkpoint}: not a readable checkpoint" in err
    assert err.count("\n") == 1
    assert checkpoint.exists()
    assert command(*quick, "--fresh")[0] == 0
    assert not checkpoint.exists()


def test_torchrun_trains_the_model_of_one_process(words, command, tmp_path):
    words[words.index("--out") + 1] = tmp_path / "two"
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    two = subprocess.run(
        [sys.executable, *torchrun, "-m", "dualrank", *map(str, words), "--json"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    words[words.index("--out") + 1] = tmp_path / "one"
    _, one, _ = command(*words, "--json")
    assert json.loads(one)["examination"] == pytest.approx(json.loads(two)["examination"], rel=1e-4)
    for name in ("manifest.json", "report.html", "twin/manifest.json"):
        assert (tmp_path / "two" / name).exists()
    scores = [Model.load(tmp_path / name).predict(np.eye(3)) for name in ("one", "two")]
    np.testing.assert_allclose(*scores, atol=1e-4)
    assert not list((tmp_path / "two").glob("checkpoint*"))


def test_a_click_model_run_can_be_cut_and_goes_on(command, folder, tmp_path, monkeypatch):
    words = ("train", folder / "log.parquet", "--features", folder / "features.parquet",
             "--out", tmp_path / "m", "--method", "click-model", "--min-sessions", 1,
             "--steps", 40, "--hidden", 4, "--no-twin", "--no-diagnosis")  # fmt: skip
    steps = iter([*[None] * 2, StoppedError("cut")])

    def cut(report):
        def heard(done, total):
            report(done, total)
            if (error := next(steps, None)) is not None:
                raise error

        return nullcontext(heard)

    monkeypatch.setattr("dualrank.cli.train_command.leaving_on_sigterm", cut)
    assert command(*words)[0] != 0
    assert (tmp_path / "m" / "checkpoint.safetensors").exists()
    assert command(*words)[0] == 0
    assert Model.load(tmp_path / "m").training["click_model"] == "ubm"


def test_a_directory_that_is_used_again_keeps_nothing_of_the_old_model(command, folder, tmp_path):
    words = ("train", folder / "log.parquet", "--features", folder / "features.parquet",
             "--out", tmp_path / "m", "--steps", 20, "--hidden", 4)  # fmt: skip
    assert command(*words, "--method", "dla")[0] == 0
    assert {"twin", "diagnosis.json"} <= {path.name for path in (tmp_path / "m").iterdir()}
    assert command(*words, "--method", "naive", "--no-diagnosis")[0] == 0
    left = {path.name for path in (tmp_path / "m").iterdir()}
    assert left == {"manifest.json", "ranker.safetensors", "report.html"}


def test_models_of_other_features_are_compared(command, folder, tmp_path):
    table = pq.read_table(folder / "features.parquet")
    pq.write_table(table.drop_columns(["f1"]), tmp_path / "fewer.parquet")
    for name, features in (
        ("all", folder / "features.parquet"),
        ("two", tmp_path / "fewer.parquet"),
    ):
        words = ("train", folder / "log.parquet", "--features", features, "--out", tmp_path / name,
                 "--steps", 20, "--hidden", 4, "--no-twin", "--no-diagnosis")  # fmt: skip
        assert command(*words)[0] == 0
    code, out, _ = command("evaluate", tmp_path / "all", folder / "features.parquet",
                           "--against", tmp_path / "two", "--json")  # fmt: skip
    assert code == 0
    alone = command("evaluate", tmp_path / "two", folder / "features.parquet", "--json")[1]
    assert json.loads(out)["map"]["against"] == json.loads(alone)["map"]["value"]


def test_a_naive_model_has_nothing_to_debias_with(command, folder, tmp_path):
    words = ("train", folder / "log.parquet", "--features", folder / "features.parquet",
             "--out", tmp_path / "m", "--method", "naive", "--steps", 20)  # fmt: skip
    assert command(*words, "--no-diagnosis")[0] == 0
    code, _, err = command("export", tmp_path / "m", "--to", "letor", "--out", tmp_path / "y.txt",
                           "--log", folder / "log.parquet",
                           "--features", folder / "features.parquet")  # fmt: skip
    assert code == 2
    assert "a model of method naive has no propensities" in err


def test_help_names_every_method(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    code, out, _ = command("train", "--help")
    assert code == 0
    assert f"How clicks are learned from: {', '.join(METHODS)}." in out


@pytest.mark.parametrize("method", ["likelihood", "grounded", "stopping", "imitation"])
def test_every_way_to_learn_writes_its_model_and_leaves_no_checkpoint(
    command, words, tmp_path, method
):
    code, out, err = command(*words, "--method", method, "--no-diagnosis", "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["examination"] is not None) == (method in ("likelihood", "grounded"))
    model = Model.load(tmp_path / "m")
    assert model.training["method"] == method
    assert not list((tmp_path / "m").glob("checkpoint*"))


def test_two_trainings_do_not_write_into_one_directory(command, words, tmp_path):
    with writing_alone(tmp_path / "m"):
        code, _, err = command(*words)
    assert code == 2
    assert f"{tmp_path / 'm'}: process {os.getpid()} is writing here; wait for its end" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("refused", [["--features", "nothing.parquet"], ["--steps", 0]])
def test_a_training_that_is_refused_leaves_no_directory(command, words, tmp_path, refused):
    words[words.index("--out") + 1] = tmp_path / "a" / "m"
    code, _, _ = command(*words, *refused)
    assert code == 2
    assert list(tmp_path.iterdir()) == []


def test_what_is_measured_while_learning_has_a_name(command, words, folder):
    quick = [*words, "--no-twin", "--no-diagnosis"]
    _, out, _ = command(*quick)
    (line,) = (line for line in out.splitlines() if line.startswith("kept "))
    assert (
        "mean discount of the clicks of 6 held-out queries, with the method's own weights" in line
    )
    assert "not between methods" in line
    _, out, _ = command(*quick, "--validation", folder / "features.parquet")
    (line,) = (line for line in out.splitlines() if line.startswith("kept "))
    assert line.endswith(", ndcg@10 of 60 judged queries")


def test_auto_that_chose_naive_says_what_can_be_done(command, folder, tmp_path):
    words = ("train", folder / "log.parquet", "--features", folder / "features.parquet",
             "--out", tmp_path / "m", "--steps", 5, "--no-diagnosis")  # fmt: skip
    assert command(*words, "--ranker", "linear", "--no-twin")[0] == 0
    held = Model.load(tmp_path / "m")
    assert "MODEL/twin" not in (tmp_path / "m" / "report.html").read_text()
    told = {**held.training, "auto": {"chosen": "naive", "why": "so", "leads": {}}}
    replace(held, propensity=None, training=told).save(tmp_path / "m")
    code, _, err = command("export", tmp_path / "m", "--to", "letor", "--out", tmp_path / "y.txt",
                           "--log", folder / "log.parquet",
                           "--features", folder / "features.parquet")  # fmt: skip
    assert code == 2
    assert "method auto chose naive, so that the model has no propensities" in err
    assert "train a model with --method dla" in err


def test_ranking_with_a_model_that_tells_nothing_apart_warns(
    command, words, folder, tmp_path, caplog
):
    assert command(*words, "--no-twin", "--no-diagnosis")[0] == 0
    held = Model.load(tmp_path / "m")
    held.ranker.weights[-1].zero_()
    held.save(tmp_path / "m")
    features = folder / "features.parquet"
    code, _, _ = command("rank", tmp_path / "m", features, "--out", tmp_path / "r.csv")
    assert code == 0
    assert "100% of all pairs of documents of one query have equal scores" in caplog.text
