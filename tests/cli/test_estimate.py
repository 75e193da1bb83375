"""`dualrank estimate`, as a user runs it, with good input and with bad."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.generator import generate_splits, with_document_ids
from dualrank.data.interventions import join_lists
from dualrank.data.letor.writer import write_letor
from dualrank.data.lists import top_lists
from dualrank.data.log.read_log import read_log
from dualrank.data.runs import write_run
from dualrank.learning.fit import fit
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import Linear
from dualrank.settings import TrainingSettings

HERE = ("--resamples", 50)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Features, a log of three rankers, a good and a bad run, and a model of the same log."""
    here = tmp_path_factory.mktemp("estimate")
    data = with_document_ids(generate_splits("tiny").train)
    write_letor(data, here / "train.txt")
    rng = np.random.default_rng(0)

    def scored(noise):
        return data.grades + noise * rng.normal(size=data.document_count)

    lists = join_lists([top_lists(data, scored(2), 10) for _ in range(3)])
    table = sample_log(data, lists, PositionBasedUser(), 8_000, rng).to_table(data)
    session = table["session_id"].to_numpy()
    table = table.append_column("device", pa.array(np.array(["desk", "phone"])[session % 2]))
    bought = table["clicked"].to_numpy() & (rng.random(len(table)) < 0.3)
    table = table.append_column("purchase", pa.array(bought.astype(int)))
    pq.write_table(table, here / "log.parquet")
    write_run(here / "good.run", data, scored(0.5))
    write_run(here / "bad.run", data, -scored(0.5))
    log = read_log(here / "log.parquet", data)
    trained = fit(
        log, data, method="naive", ranker=Linear(), settings=TrainingSettings(steps=20, seed=3)
    )
    trained.save(here / "new")
    Propensity.of(PositionBasedUser().examination(10)).write(here / "curve.json")
    return here


@pytest.fixture
def estimate(command, folder, monkeypatch):
    """`dualrank estimate …` in the folder; the features are those of the log unless given."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words):
        given = () if "--features" in words else ("--features", "train.txt")
        return command("estimate", *words, *given, *HERE)

    return run


def in_one_line(text):
    return " ".join(text.split())


def test_the_verdict_comes_first_and_the_estimates_under_it(estimate):
    words = ("--model", "good.run", "--against", "bad.run", "--only-displayed")
    code, out, _ = estimate("log.parquet", *words, "--context", "device")
    assert code == 0
    assert out.startswith("good.run is better than bad.run: +")
    for name in ("Doubly robust", "Direct", "Inverse propensity", "Self-normalised", "Clipped"):
        assert name in out
    for name in ("Clicked DCG", "Precision at 1", "Reciprocal rank of the first click"):
        assert name in out
    assert "device=phone" in out
    assert "effective clicks" in out
    assert out.index("is better") < out.index("Doubly robust") < out.index("effective clicks")


def test_json_has_the_verdict_and_every_number(estimate):
    words = ("log.parquet", "--model", "bad.run", "--against", "good.run", "--only-displayed")
    code, out, _ = estimate(*words, "--propensity", "curve.json", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["verdict"] == "worse"
    assert said["curve_source"] == "from curve.json"
    first = said["estimates"][0]
    assert (first["metric"], first["estimator"]) == ("clicks", "doubly-robust")
    assert first["low"] < first["difference"] < first["high"] < 0
    assert set(said["otherwise"]) == {"0.5", "1.5"}
    assert {"top", "examined", "effective_clicks", "heaviest"} <= set(said["support"])
    assert len(said["moves"][0]["new"]) > 1
    # The same seed, the same numbers.
    assert estimate(*words, "--propensity", "curve.json", "--json")[1] == out


def test_a_folder_gets_the_page_the_numbers_and_the_figures(estimate, tmp_path):
    out = tmp_path / "decision"
    words = ("log.parquet", "--model", "good.run", "--only-displayed", "--out", out)
    code, text, _ = estimate(*words)
    assert code == 0
    assert "report.html" in text
    written = {path.name for path in out.iterdir()}
    figures = {f"figure-{name}.svg" for name in ("estimators", "metrics", "parts", "curve")}
    assert written == {"report.html", "estimate.json", "table.md", "queries.md", *figures}
    page = (out / "report.html").read_text()
    assert "Would good.run earn more than what was logged?" in page
    assert "Queries that gain most" in page
    assert json.loads((out / "estimate.json").read_text())["old"] == "logged"
    # What the command wrote it replaces; what others wrote it does not.
    assert estimate(*words)[0] == 0
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "report.html").write_text("mine")
    code, _, err = estimate(*words[:-1], tmp_path / "own")
    assert code == 2
    assert "--force" in err


def test_a_model_of_this_log_is_judged_on_what_it_held_out(estimate, folder, tmp_path):
    words = ("log.parquet", "--model", "new", "--only-displayed", "--out", tmp_path / "d")
    code, out, _ = estimate(*words, "--propensity", "curve.json")
    assert code == 0
    note = "new was trained on this log, and is judged on the queries that it held out."
    assert note in in_one_line(out)
    assert note in (tmp_path / "d" / "report.html").read_text()
    found = json.loads((tmp_path / "d" / "estimate.json").read_text())
    every = len(set(pq.read_table(folder / "log.parquet")["query_id"].to_pylist()))
    assert found["queries"] < every / 5


def test_a_model_directory_may_be_the_old_ranker(estimate):
    words = ("log.parquet", "--model", "good.run", "--only-displayed", "--json")
    code, out, err = estimate(*words, "--against", "new", "--propensity", "curve.json")
    assert code == 0, err
    said = json.loads(out)
    assert (said["new"], said["old"]) == ("good.run", "new")
    assert said["verdict"] == "better"
    assert any(note.startswith("new was trained on this log") for note in said["notes"])
    assert said["support_of_old"]["ranking"] == "new"


def test_a_curve_is_learned_where_dla_is_asked_for(estimate, monkeypatch):
    few = partial(TrainingSettings, steps=20)
    monkeypatch.setattr("dualrank.decisions.curve_choice.TrainingSettings", few)
    words = ("log.parquet", "--model", "good.run", "--only-displayed", "--propensity", "dla")
    code, out, err = estimate(*words, "--json")
    assert code == 0, err
    said = json.loads(out)
    assert said["curve_source"] == "learned by dual learning"
    assert not said["curve_is_counted"]


def test_what_was_never_displayed_is_refused(estimate, tmp_path):
    code, out, _ = estimate("log.parquet", "--model", "bad.run", "--out", tmp_path / "d")
    assert code == 0
    said = in_one_line(out)
    assert "% of what bad.run shows, as far as it would be looked at, was never displayed" in said
    assert said.startswith("Cannot tell: ")
    assert "(--only-displayed)" in said
    assert "only_displayed" not in said
    assert said.count("refused") >= 4
    page = (tmp_path / "d" / "report.html").read_text()
    assert "Refused: Inverse propensity, Self-normalised, Clipped" in page
    assert "(--only-displayed)" in page


def test_events_are_weighed_as_in_training(estimate):
    words = ("log.parquet", "--model", "good.run", "--only-displayed", "--event", "purchase=5")
    code, out, _ = estimate(*words)
    assert code == 0
    assert "Value per session" in out
    assert "Reciprocal rank" not in out
    code, _, err = estimate(*words[:-1], "purchase")
    assert code == 2
    assert "KIND=WEIGHT" in err


def test_curves_by_context_bring_their_column(estimate, tmp_path):
    curve = Propensity.of(PositionBasedUser().examination(10))
    content = json.loads(curve.to_json())
    one = {"examination": content["examination"], "sessions": 10}
    content |= {"context": "device", "contexts": {"phone": one, "desk": one}}
    (tmp_path / "curves.json").write_text(json.dumps(content))
    words = ("log.parquet", "--model", "good.run", "--only-displayed", "--json")
    code, out, err = estimate(*words, "--propensity", tmp_path / "curves.json")
    assert code == 0, err
    assert {"device=phone", "device=desk"} <= {
        each["part"] for each in json.loads(out)["estimates"]
    }


def test_a_curve_that_ends_early_is_said_to(estimate, tmp_path):
    Propensity.of([1.0, 0.8, 0.6, 0.5]).write(tmp_path / "short.json")
    words = ("log.parquet", "--model", "good.run", "--only-displayed")
    code, out, _ = estimate(*words, "--propensity", tmp_path / "short.json")
    assert code == 0
    assert "Only the first 4 of 10 positions are judged" in in_one_line(out)


def changed(folder, name, keep=None, **columns):
    """The log with other columns, or some of its rows, under another name."""
    table = pq.read_table(folder / "log.parquet")
    if keep is not None:
        table = table.filter(keep(table))
    for key, value in columns.items():
        table = table.set_column(table.column_names.index(key), key, value(table))
    pq.write_table(table, folder / name)
    return name


def of_few_queries(table):
    few = pa.array(sorted(set(table["query_id"].to_pylist()))[:6])
    return pc.is_in(table["query_id"], few)


def not_clicked(table):
    return pa.array(np.zeros(len(table), dtype=bool))


def other_names(table):
    return pa.array([f"x{name}" for name in table["doc_id"].to_pylist()])


def test_a_log_that_cannot_tell_is_one_sentence(estimate, folder):
    logs = {
        changed(folder, "unclicked.parquet", clicked=not_clicked): "none of the 8000 sessions has",
        changed(folder, "few.parquet", keep=of_few_queries): "need 10 at least",
        changed(
            folder, "elsewhere.parquet", doc_id=other_names
        ): "no document of the log has features",
    }
    for log, sentence in logs.items():
        refused(estimate(log, "--model", "good.run", "--propensity", "curve.json"), sentence)


def test_features_without_what_was_displayed_are_one_sentence(estimate, folder, tmp_path):
    lines = (folder / "train.txt").read_text().splitlines(keepends=True)
    Path(tmp_path / "part.txt").write_text("".join(lines[: len(lines) // 2]))
    words = ("log.parquet", "--model", "good.run", "--features", tmp_path / "part.txt")
    refused(estimate(*words), "document without features")


def test_a_model_of_other_features_is_one_sentence(estimate, folder, tmp_path):
    table = {"query_id": ["1", "1"], "doc_id": ["a", "b"], "x": [0.0, 1.0], "y": [1.0, 2.0]}
    pq.write_table(pa.table(table), tmp_path / "other.parquet")
    words = ("log.parquet", "--model", "new", "--features", tmp_path / "other.parquet")
    refused(estimate(*words), "2 features; expected 32")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--model", "good.run", "--propensity", "harvest"), "--propensity harvest is neither a"),
        (("--model", "logged"), "what was logged is the old ranking"),
        (("--model", "absent"), "absent: there is no such file or model directory"),
        (("--model", "good.run", "--against", "absent"), "absent: there is no such file"),
        (("--model", "flat.csv"), "flat.csv gives every document the same score"),
        (("--model", "strange.run"), "strange.run: none of its documents"),
        (("--model", "empty.run"), "empty.run: the run is empty"),
        (("--model", "good.run", "--context", "color"), "color"),
        (("--model", "good.run", "--event", "refund=1"), "refund"),
    ],
)
def test_what_goes_wrong_is_one_sentence(estimate, folder, words, sentence):
    if not (folder / "flat.csv").exists():
        rows = (folder / "good.run").read_text().splitlines()
        pairs = [line.split()[::2][:2] for line in rows]
        flat = "".join(f"{query},{document},1.0\n" for query, document in pairs)
        (folder / "flat.csv").write_text("query_id,doc_id,score\n" + flat)
        (folder / "strange.run").write_text("none Q0 such 1 1.0 x\n")
        (folder / "empty.run").write_text("")
    refused(estimate("log.parquet", *words), sentence)


def refused(ended, sentence):
    code, out, err = ended
    assert (code, out) == (2, ""), err
    assert sentence in err
    assert err.count("\n") == 1
