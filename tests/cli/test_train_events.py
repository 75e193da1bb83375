"""`dualrank train --event`: weights that change without reading the log again."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.learning.model import Model

QUERIES, DOCUMENTS, SESSIONS = 40, 5, 4_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Users who look less far down, click by one feature and buy by another."""
    path = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(QUERIES * DOCUMENTS, 2))
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    names = np.array([f"d{row}" for row in range(len(X))])
    good = {"query_id": query.astype(str), "doc_id": names, "grade": (X[:, 1] > 0.5).astype(int)}
    features = {f"f{i}": X[:, i] for i in range(2)}
    pq.write_table(pa.table({**good, **features}), path / "features.parquet")
    asked = rng.integers(QUERIES, size=SESSIONS)
    orders = np.array([rng.permutation(DOCUMENTS) for _ in range(3)])
    rows = (asked[:, None] * DOCUMENTS + orders[rng.integers(3, size=SESSIONS)]).ravel()
    position = np.tile(np.arange(1, DOCUMENTS + 1), SESSIONS)
    seen = rng.random(len(rows)) < 1 / position
    log = {
        "session_id": np.repeat(np.arange(SESSIONS), DOCUMENTS),
        "query_id": query[rows].astype(str),
        "doc_id": names[rows],
        "position": position,
        "clicked": seen & (rng.random(len(rows)) < np.where(X[rows, 0] > 0, 0.7, 0.1)),
        "bought": seen & (rng.random(len(rows)) < np.where(X[rows, 1] > 0, 0.4, 0.05)),
    }
    pq.write_table(pa.table(log), path / "log.parquet")
    return path


@pytest.fixture
def words(folder, tmp_path):
    def of(log, *more):
        return ["train", log, "--features", folder / "features.parquet", "--out", tmp_path / "m",
                "--ranker", "linear", "--steps", 150, "--validation", 0.2, *more]  # fmt: skip

    return of


def order_by(model):
    """Whether a model prefers what is clicked (below 0) or what is bought (above 0)."""
    scores = model.predict(np.eye(2, dtype=np.float32))
    return float(scores[1] - scores[0])


def test_weights_change_on_one_reduced_log(command, words, folder, tmp_path):
    reduced = tmp_path / "reduced.parquet"
    kept = ("--event", "purchase", "--column", "purchase=bought")
    assert command("reduce", folder / "log.parquet", *kept, "--out", reduced)[0] == 0
    found = {}
    for weight in (0, 1):
        weights = ("--event", f"click={1 - weight}", "--event", f"purchase={weight}")
        code, out, err = command(
            *words(reduced, *weights), "--method", "dla", "--no-diagnosis", "--json"
        )
        assert (code, err) == (0, "")
        found[weight] = json.loads(out)["examination"], order_by(Model.load(tmp_path / "m"))
    assert found[0][0] == found[1][0]
    assert found[0][1] < 0 < found[1][1]


def test_a_log_is_read_with_the_events_that_are_weighed(command, words, folder, tmp_path):
    weights = ("--event", "purchase=5", "--column", "purchase=bought")
    code, out, _ = command(*words(folder / "log.parquet", *weights), "--method", "dla", "--json")
    assert code == 0
    twin = json.loads(out)["twin"]
    assert "held-out events" in twin["why"]
    model, naive = Model.load(tmp_path / "m"), Model.load(tmp_path / "m" / "twin")
    assert model.training["events"] == naive.training["events"] == {"click": 1, "purchase": 5}
    assert model.training["stages"]["ranker"]["method"] == "ipw"
    assert naive.training["stages"] == {
        "propensity": None,
        "ranker": {"method": "naive", "events": {"click": 1, "purchase": 5}},
    }
    assert "purchase" in (tmp_path / "m" / "report.html").read_text()
    assert (tmp_path / "m" / "diagnosis.json").exists()
    assert not list((tmp_path / "m").glob("checkpoint*"))


def test_auto_takes_events(command, words, folder, tmp_path):
    weights = ("--event", "purchase=5", "--column", "purchase=bought", "--no-diagnosis")
    code, out, _ = command(*words(folder / "log.parquet", *weights), "--steps", 30)
    assert code == 0
    assert f"{tmp_path / 'm'}: auto on" in out.replace("\n", "")
    training = Model.load(tmp_path / "m").training
    assert training["stages"]["propensity"]["auto"]["chosen"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--event", "purchase"], "--event takes KIND=WEIGHT, such as purchase=5, not 'purchase'"),
        (["--event", "purchase=much"], "--event takes KIND=WEIGHT, such as purchase=5, not 'purc"),
        (["--event", "=5"], "--event takes KIND=WEIGHT, such as purchase=5, not '=5'"),
        (["--event", "bought=-1"], "the event 'bought' weighs -1.0; expected a number of 0 or m"),
        (["--event", "bought=nan"], "the event 'bought' weighs nan; expected a number of 0 or mo"),
        (["--event", "click=0"], "nothing has a weight above 0 among the events click, which"),
        (["--event", "cart=1"], "there is no column 'cart' of events; the log has session_id, que"),
        (["--event", "doc_id=1"], "'doc_id' is what a log's own column means, and no kind of eve"),
    ],
)
def test_weights_that_mean_nothing_are_one_sentence(command, words, folder, options, sentence):
    code, out, err = command(*words(folder / "log.parquet", *options))
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_reduced_log_without_the_event_says_what_it_has(command, words, folder, tmp_path):
    reduced = tmp_path / "reduced.parquet"
    assert command("reduce", folder / "log.parquet", "--out", reduced)[0] == 0
    code, _, err = command(*words(reduced, "--event", "bought=5"))
    assert code == 2
    assert "the log has no event 'bought' besides clicks; it has none: events are named when" in err
    assert err.count("\n") == 1
