"""`dualrank clicks` and simulated users, as a new user would run them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from dualrank.clicks.models.registry import MODELS, load_click_model
from dualrank.clicks.users import USERS
from dualrank.data.generator import generate_splits, with_document_ids
from dualrank.data.letor.writer import write_letor


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A long log of 600 sessions on two queries, with a column that splits it."""
    rng = np.random.default_rng(0)
    sessions = np.repeat(np.arange(600), 4)
    query = sessions % 2
    position = np.tile(np.arange(1, 5), 600)
    document = (position + sessions // 2) % 4
    clicked = rng.random(2_400) < (0.2 + 0.15 * document) / position**0.5
    path = tmp_path_factory.mktemp("clicks") / "clicks.parquet"
    table = {
        "session_id": sessions,
        "query_id": [f"q{q}" for q in query],
        "doc_id": [f"d{d}" for d in document],
        "position": position,
        "clicked": clicked,
        "part": ["test" if s % 3 == 0 else "train" for s in sessions],
    }
    pq.write_table(pa.table(table), path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_every_model_fits_and_is_kept(command, log, tmp_path, name):
    out = tmp_path / "model.parquet"
    code, text, _ = command("clicks", "fit", log, "--model", name, "--out", out, "--json")
    assert code == 0
    result = json.loads(text)
    assert result["model"] == name
    assert result["sessions"] == 600
    assert result["pairs"] == 8
    assert result["converged"]
    assert load_click_model(out).name == name


def test_fit_prints_what_it_found(command, log):
    code, text, _ = command("clicks", "fit", log, "--model", "ubm")
    assert code == 0
    assert text.startswith("user browsing (ubm) on ClickLog(600 sessions")
    assert "examination at a position (rows), by the last click above it (columns)" in text
    head = next(line for line in text.splitlines() if line.startswith("position"))
    assert head.split() == ["position", "none", "1", "2", "3"]
    rows = [line.split()[0] for line in text.splitlines() if line[:1].isdigit()]
    assert rows == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("pbm", ["position", "examination"]),
        ("pbm-trust", ["position", "click on a relevant document"]),
        ("ccm", ["parameter", "reading on after a click on a relevant document"]),
    ],
)
def test_fit_says_what_its_numbers_are(command, log, model, words):
    _, text, _ = command("clicks", "fit", log, "--model", model)
    for each in words:
        assert each in text


def test_compare_prints_every_model_and_draws(command, log, tmp_path):
    figure = tmp_path / "models.svg"
    code, text, _ = command("clicks", "compare", log, "--held-out", "part=test", "--figure", figure)
    assert code == 0
    for name in MODELS:
        assert f"\n{name} " in text
    assert "fitted on 400 sessions, judged on 200" in text
    assert "train with method" in text or "Believe no relevance" in text
    assert "standard errors" in text
    assert "</svg>" in figure.read_text()


def test_compare_by_share_and_by_another_log(command, log):
    code, text, _ = command("clicks", "compare", log, "--models", "pbm,rank-ctr", "--json")
    assert code == 0
    result = json.loads(text)
    assert [model["model"] for model in result["models"]] == ["pbm", "rank-ctr"]
    assert result["fitted_on"] + result["judged_on"] == 600
    assert len(result["models"][0]["perplexity_per_rank"]) == 4
    code, text, _ = command(
        "clicks", "compare", log, "--held-out", log, "--models", "pbm", "--json"
    )
    assert json.loads(text)["judged_on"] == 600


def test_relevance_is_a_table_with_intervals(command, log, tmp_path):
    out = tmp_path / "relevance.csv"
    code, text, _ = command("clicks", "relevance", log, "--model", "pbm", "--out", out)
    assert code == 0
    assert "relevance of 8 documents by position-based" in text
    table = csv.read_csv(out)
    assert table.column_names == [
        "query_id", "doc_id", "relevance", "observations", "low", "high",
    ]  # fmt: skip
    by_doc = dict(zip(table["doc_id"].to_pylist(), table["relevance"].to_pylist(), strict=True))
    assert by_doc["d3"] > by_doc["d0"]


def test_relevance_of_a_kept_model_is_that_of_the_log(command, log, tmp_path):
    command("clicks", "fit", log, "--model", "dbn", "--out", tmp_path / "dbn.json")
    command("clicks", "relevance", tmp_path / "dbn.json", "--out", tmp_path / "kept.parquet")
    command("clicks", "relevance", log, "--model", "dbn", "--out", tmp_path / "direct.parquet")
    kept, direct = (pq.read_table(tmp_path / f"{n}.parquet") for n in ("kept", "direct"))
    assert kept.equals(direct)


def test_a_log_in_json_is_not_taken_for_a_model(command, log, tmp_path):
    rows = pq.read_table(log).to_pylist()
    (tmp_path / "log.json").write_text("\n".join(json.dumps(row) for row in rows))
    words = ("clicks", "relevance", tmp_path / "log.json", "--out", tmp_path / "r.csv", "--json")
    assert json.loads(command(*words)[1])["documents"] == 8


def test_relevance_can_leave_out_what_was_hardly_shown(command, log, tmp_path):
    out = tmp_path / "relevance.parquet"
    words = ("clicks", "relevance", log, "--out", out, "--min-sessions", 10_000, "--json")
    assert json.loads(command(*words)[1])["documents"] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fit", "LOG", "--model", "psychic"), "unknown click model 'psychic'; known are"),
        (("fit", "nowhere.parquet"), "nowhere.parquet"),
        (("fit", "LOG", "--out", "m.pkl"), "m.pkl: a click model is written as .parquet or .json"),
        (("fit", "LOG", "--prior-strength", "-1"), "--prior-strength"),
        (("compare", "LOG", "--models", "pbm,x"), "unknown click model 'x'"),
        (("compare", "LOG", "--held-out", "1.5"), "between 0 and 1, not 1.5"),
        (("compare", "LOG", "--held-out", "part=x"), "column 'part' holds test, train; it must"),
        (("compare", "LOG", "--held-out", "layout=x"), "layout"),
        (("compare", "LOG", "--held-out", "nowhere.parquet"), "nowhere.parquet"),
        (("compare", "LOG", "--figure", "f.pdf"), "f.pdf: a figure is written as .svg or .png"),
        (("relevance", "LOG", "--out", "r.txt"), "r.txt: a table of relevance is written as"),
        (("relevance", "nowhere.json", "--out", "r.csv"), "nowhere.json"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(
    command, log, tmp_path, monkeypatch, words, sentence
):
    monkeypatch.chdir(tmp_path)
    code, out, error = command("clicks", *(log if word == "LOG" else word for word in words))
    assert code == 2
    assert out == ""
    assert error.strip().startswith("dualrank: ")
    assert error.strip().count("\n") == 0
    assert sentence in error


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    path = tmp_path_factory.mktemp("graded") / "train.txt"
    write_letor(with_document_ids(generate_splits("tiny").train), path)
    return path


@pytest.mark.parametrize("name", USERS)
def test_any_user_can_be_simulated(command, graded, tmp_path, name):
    out = tmp_path / "clicks.parquet"
    words = ("simulate", graded, "--out", out, "--sessions", 500, "--click-model", name, "--json")
    code, text, _ = command(*words)
    assert code == 0
    assert json.loads(text)["clicks"] > 0


def test_a_user_of_ones_own(command, graded, tmp_path):
    user = tmp_path / "user.json"
    user.write_text('{"model": "cascade", "epsilon": 1.0}')
    words = ("simulate", graded, "--out", tmp_path / "c.parquet", "--sessions", 500)
    code, text, _ = command(*words, "--click-model", user, "--json")
    assert code == 0
    assert json.loads(text)["clicks"] == 500  # whoever finds everything attractive clicks once


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--click-model", "psychic"), "unknown user 'psychic'"),
        (("--click-model", "dbn", "--eta", "1"), "user dbn has no 'eta'"),
        (("--click-model", "nobody.json"), "nobody.json: cannot be read"),
        (
            ("--click-model", "nobody.json", "--epsilon", "0"),
            "--epsilon 0.0 belongs into nobody.json",
        ),
        (("--epsilon", "2"), "epsilon is a probability, not 2.0"),
    ],
)
def test_impossible_users_are_refused(command, graded, tmp_path, words, sentence):
    code, _, error = command("simulate", graded, "--out", tmp_path / "c.parquet", *words)
    assert code == 2
    assert sentence in error


def test_models_that_need_whole_lists_are_left_out_of_a_comparison(command, log, tmp_path):
    table = pq.read_table(log)
    sampled = tmp_path / "sampled.parquet"
    pq.write_table(
        table.filter(pa.array(np.random.default_rng(1).random(len(table)) < 0.6)), sampled
    )
    code, _, error = command("clicks", "compare", sampled)
    assert code == 2
    assert "partial" in error
    reduced = tmp_path / "reduced.parquet"
    assert command("reduce", sampled, "--partial", "--out", reduced)[0] == 0
    code, out, _ = command("clicks", "compare", reduced)
    assert code == 0
    assert "not fitted, as lists have gaps: cascade, dcm, dcm-em, ccm, ubm" in out
    code, _, error = command("clicks", "compare", reduced, "--models", "pbm,ubm")
    assert code == 2
    assert "the click model ubm follows users down the list" in error
