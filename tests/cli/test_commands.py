"""Every command as a new user would run it, with good input and with bad."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dualrank as dr
from dualrank.data.letor.reader import read_letor
from dualrank.learning.checkpoint import read_checkpoint

from ..waiting import wait_until

COMMANDS = (
    "demo",
    "generate",
    "simulate",
    "train",
    "rank",
    "evaluate",
    "export",
    "propensity",
    "judge",
    "index",
    "search",
    "features",
    "reproduce oracle-mode",
    "reproduce realistic-mode",
    "reproduce click-models",
    "generate-web",
    "reproduce drift",
    "reproduce methods",
    "reproduce scenarios",
    "diagnose",
    "reduce",
    "clicks fit",
    "clicks compare",
    "clicks relevance",
    "learn",
    "versions",
    "rollback",
)

Command = Callable[..., tuple[int, str, str]]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory, run_in: Run) -> Path:
    """Generated LETOR text, a log and two models, made by the commands themselves."""
    folder = tmp_path_factory.mktemp("collection")

    def dualrank(*words: object) -> None:
        assert run_in(folder, *words).returncode == 0

    dualrank("generate", folder, "--preset", "tiny")
    log = folder / "clicks.parquet"
    dualrank("simulate", folder / "train.txt", "--out", log, "--sessions", 20_000)
    for method in ("dla", "naive"):
        dualrank(
            "train", log, "--features", folder / "train.txt", "--out", folder / method,
            "--method", method, "--steps", 200, "--hidden", "16",
        )  # fmt: skip
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_the_options_that_all_commands_share(
    command: Command, name: str
) -> None:
    code, out, _ = command(*name.split(), "--help")
    assert code == 0
    assert f"dualrank {name}" in " ".join(out.split())
    for words in ("Example:", "--seed", "--json"):
        assert words in out


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['dualrank', '--help']\n"
        "from dualrank.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numba', 'matplotlib', 'duckdb', 'sklearn', 'scipy', 'pyarrow'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_generated_files_hold_the_preset(collection: Path, command: Command) -> None:
    code, out, _ = command("generate", collection / "again", "--preset", "tiny", "--json")
    assert code == 0
    sizes = json.loads(out)
    assert sizes[str(collection / "again" / "train.txt")]["queries"] == 600
    same = (collection / "again" / "test.txt").read_bytes()
    assert same == (collection / "test.txt").read_bytes()


def test_simulated_log_has_the_columns_of_the_contract(collection: Path) -> None:
    table = pq.read_table(collection / "clicks.parquet")
    assert table.column_names == ["session_id", "query_id", "doc_id", "position", "clicked"]
    assert table["session_id"].to_numpy().max() + 1 == 20_000
    assert table["position"].to_numpy().min() == 1
    assert 0 < table["clicked"].to_numpy().mean() < 0.5


def test_trained_model_ranks_and_is_evaluated(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    values = []
    for suffix in ("parquet", "csv", "run"):
        run = tmp_path / f"scores.{suffix}"
        assert command("rank", collection / "dla", collection / "test.txt", "--out", run)[0] == 0
        code, out, _ = command("evaluate", run, collection / "test.txt", "--json")
        assert code == 0
        values.append(json.loads(out)["ndcg@10"]["value"])
    code, out, _ = command("evaluate", collection / "dla", collection / "test.txt", "--json")
    values.append(json.loads(out)["ndcg@10"]["value"])
    assert values == pytest.approx([values[0]] * 4, abs=1e-6)
    assert values[0] > 0.5


def test_what_was_displayed_is_judged_by_itself(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    """A log that displayed the documents of two queries in their order in the file."""
    data = dr.read_letor(collection / "test.txt")
    first = [row for q in (0, 1) for row in range(data.offsets[q], data.offsets[q] + 3)]
    names = data.pairs()
    lines = ["session_id,query_id,doc_id,position,clicked"]
    for number, row in enumerate(first):
        query, document = names[row]
        lines.append(f"{query},{query},{document},{number % 3 + 1},0")
    log = tmp_path / "log.csv"
    log.write_text("\n".join([*lines, "other,other,other,1,1"]))
    words = ("evaluate", collection / "dla", collection / "test.txt", "--displayed", log,
             "--metrics", "ndcg@10", "--against", collection / "naive")  # fmt: skip
    code, out, _ = command(*words, "--json")
    assert code == 0
    result = json.loads(out)
    assert set(result) == {"ndcg@10", "ndcg@10 of displayed"}
    shown = np.zeros(data.document_count, dtype=bool)
    shown[first] = True
    scores = dr.Model.load(collection / "dla").predict(data)[shown]
    alone = dr.evaluate(scores, data.keep(shown), ["ndcg@10"])["ndcg@10"]
    assert result["ndcg@10 of displayed"]["value"] == pytest.approx(alone)
    assert "log.csv displayed" in command(*words)[1]
    log.write_text("\n".join([lines[0], "other,other,other,1,1"]))
    code, _, error = command(*words)
    assert code == 2
    assert "displays none of the documents" in error


def test_two_models_are_compared_by_fishers_test(collection: Path, command: Command) -> None:
    words = ("evaluate", collection / "dla", collection / "test.txt", "--against",
             collection / "naive", "--metrics", "ndcg@10,map")  # fmt: skip
    code, out, _ = command(*words, "--json")
    assert code == 0
    result = json.loads(out)
    assert set(result) == {"ndcg@10", "map"}
    assert 0 < result["map"]["p_value"] <= 1
    difference = result["map"]["value"] - result["map"]["against"]
    assert result["map"]["difference"] == pytest.approx(difference)
    code, out, _ = command(*words)
    assert "p_value" in out


def test_learned_propensity_can_be_given_to_ipw(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    words = ("train", collection / "clicks.parquet", "--features", collection / "train.txt",
             "--out", tmp_path / "ipw", "--method", "ipw", "--steps", 50, "--hidden", "8",
             "--propensity", collection / "dla" / "propensity.json", "--json")  # fmt: skip
    code, out, _ = command(*words)
    assert code == 0
    learned = json.loads((collection / "dla" / "propensity.json").read_text())["examination"]
    assert json.loads(out)["examination"] == pytest.approx(learned)


@pytest.mark.parametrize("ranker", ["svm", "linear"])
def test_other_rankers_train_from_a_log(
    collection: Path, tmp_path: Path, command: Command, ranker: str
) -> None:
    words = ("train", collection / "clicks.parquet", "--features", collection / "train.txt",
             "--out", tmp_path / "m", "--method", "naive", "--ranker", ranker)  # fmt: skip
    assert command(*words, "--steps", 50)[0] == 0
    code, out, _ = command("evaluate", tmp_path / "m", collection / "test.txt", "--json")
    assert code == 0
    assert json.loads(out)["ndcg@10"]["value"] > 0.5


def test_demo_writes_a_report(tmp_path: Path, command: Command) -> None:
    code, out, _ = command("demo", "--preset", "tiny", "--out", tmp_path, "--jobs", 1)
    assert code == 0
    assert "DLA" in out
    names = {path.name for path in tmp_path.iterdir()}
    assert {"results.json", "table.md", "report.html", "figure-propensity.svg"} <= names


def test_reproduce_prints_results_as_json(tmp_path: Path, command: Command) -> None:
    code, out, _ = command(
        "reproduce", "oracle-mode", "--preset", "tiny", "--seeds", 2, "--jobs", 1, "--json",
        "--methods", "dla,naive,initial", "--steps", 50, "--out", tmp_path,
    )  # fmt: skip
    assert code == 0
    results = json.loads(out)
    assert results["experiment"] == "oracle-mode"
    found = [(run["method"], run["seed"]) for run in results["runs"]]
    assert found == [(m, s) for s in (0, 1) for m in ("dla", "naive", "initial")]
    assert set(results["significance"]["p_values"]) == {"naive", "initial"}


def test_realistic_mode_draws_the_papers_figures(tmp_path: Path, command: Command) -> None:
    code, out, _ = command(
        "reproduce", "realistic-mode", "--preset", "tiny", "--seeds", 1, "--jobs", 1, "--json",
        "--etas", "0,1,2", "--steps", 40, "--out", tmp_path,
    )  # fmt: skip
    assert code == 0
    runs = json.loads(out)["runs"]
    assert {(run["method"], run["eta"]) for run in runs} == {
        (method, eta) for method in ("naive", "randlist", "dla") for eta in (0, 1, 2)
    }
    measured = [run["propensity"] for run in runs if run["method"] == "randlist"]
    assert len({tuple(p["examination"]) for p in measured}) == 1
    assert min(p["mse"] for p in measured) == measured[1]["mse"]
    names = {path.name for path in tmp_path.iterdir()}
    assert {"figure-eta-ndcg10.svg", "figure-eta-err10.svg", "figure-eta-mse.svg"} <= names


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rank", "{0}/nowhere", "{0}/test.txt", "--out", "{1}/s.csv"], "not a model directory"),
        (["rank", "{0}/dla", "{0}/nowhere.txt", "--out", "{1}/s.csv"], "nowhere.txt"),
        (["rank", "{0}/dla", "{0}/test.txt", "--out", "{1}/s.xml"], ".parquet, .csv, .run"),
        (["evaluate", "{0}/dla", "{0}/test.txt", "--metrics", "ndgc@10"], "ndgc"),
        (["evaluate", "{0}/nowhere.run", "{0}/test.txt"], "no such file"),
        (["simulate", "{0}/train.txt", "--out", "{1}/l.parquet", "--eta", "-1"], "eta"),
        (["train", "{0}/x.parquet", "--features", "{0}/train.txt", "--out", "{1}/m"], "x.parquet"),
        (
            ["train", "{0}/train.txt", "--features", "{0}/train.txt", "--out", "{1}/m"],
            "a log is a .parquet, .pq, .csv",
        ),
        (
            ["train", "{0}/clicks.parquet", "--features", "{0}/test.txt", "--out", "{1}/m"],
            "no document of the log has features; the log shows document",
        ),
        (
            ["train", "{0}/clicks.parquet", "--features", "{0}/train.txt", "--out", "{1}/m",
             "--method", "ipw"],
            "needs a propensity",
        ),
        (
            ["train", "{0}/clicks.parquet", "--features", "{0}/train.txt", "--out", "{1}/m",
             "--hidden", "many"],
            "--hidden takes whole numbers",
        ),
        (
            ["train", "{0}/clicks.parquet", "--features", "{0}/train.txt", "--out", "{1}/m",
             "--validation", "none.txt"],
            "--validation takes",
        ),
        (["simulate", "{0}/train.txt", "--out", "{1}/log.csv"], ".parquet"),
        (["evaluate", "{0}/dla", "{0}/test.txt", "--max-grade", "2"], "expected at most 2"),
        (["train", "{0}/clicks.parquet", "--features", "{0}/train.txt", "--out", "{1}/m",
          "--metric", "foo"], "unknown metric 'foo'"),
        (["train", "{0}/clicks.parquet", "--features", "{0}/train.txt", "--out", "{1}/m",
          "--learning-rate", "inf"], "--learning-rate must be a number above 0"),
        (["train", "{0}/clicks.parquet", "--features", "{0}/train.txt", "--out", "{1}/m",
          "--method", "magic"], "magic"),
        (["dance"], "No such command"),
        (["reproduce", "oracle-mode", "--data", "mq2008", "--root", "{1}", "--fold", "x"],
         "--fold x is neither a number"),
        (["reproduce", "oracle-mode", "--data", "mq2008"], "--root"),
        (["reproduce", "oracle-mode", "--data", "mq", "--root", "{1}"], "mq2008"),
        (["reproduce", "oracle-mode", "--methods", "dla,magic"], "magic"),
        (["reproduce", "realistic-mode", "--etas", "0,much"], "--etas takes numbers"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_one_sentence_and_exit_code_2(
    collection: Path, tmp_path: Path, command: Command, words: list[str], sentence: str
) -> None:
    code, _, err = command(*(word.format(collection, tmp_path) for word in words))
    assert code == 2
    lines = [line for line in err.splitlines() if line.strip()]
    assert len(lines) == 1
    assert lines[0].startswith("dualrank: ")
    assert sentence in lines[0]


def test_a_file_without_its_last_features_can_be_ranked(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    """LETOR text leaves out zeros, so a small file may never name the last feature."""
    sparse = tmp_path / "sparse.txt"
    sparse.write_text("1 qid:1 1:0.5 # docid = a\n0 qid:1 2:0.5 # docid = b\n")
    out = tmp_path / "scores.csv"
    assert command("rank", collection / "dla", sparse, "--out", out)[0] == 0
    code, text, _ = command("evaluate", collection / "dla", sparse, "--json", "--max-grade", 4)
    assert code == 0
    assert 0 < json.loads(text)["err@10"]["value"] < 0.1
    assert command("evaluate", out, sparse, "--metrics", "ndcg@5, map")[0] == 0


def test_training_leaves_a_twin_and_a_report(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    words = ["train", collection / "clicks.parquet", "--features", collection / "train.txt",
             "--steps", 40, "--hidden", 8, "--method", "dla",
             "--out", tmp_path / "m"]  # fmt: skip
    code, text, _ = command(*words)
    assert code == 0
    assert "naive twin" in text
    assert {path.name for path in (tmp_path / "m").iterdir()} == {
        "diagnosis.json", "manifest.json", "propensity.json", "ranker.safetensors", "report.html",
        "twin",
    }  # fmt: skip
    assert "Can this log be trusted?" in (tmp_path / "m" / "report.html").read_text()
    test = collection / "test.txt"
    assert command("evaluate", tmp_path / "m", test, "--against", tmp_path / "m" / "twin")[0] == 0
    code, text, _ = command(*words[:-1], tmp_path / "n", "--no-twin", "--no-diagnosis", "--json")
    assert code == 0
    assert json.loads(text)["twin"] is None
    assert not (tmp_path / "n" / "twin").exists()
    assert not (tmp_path / "n" / "diagnosis.json").exists()


def test_auto_too_leaves_its_naive_ranker_to_be_compared_with(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    words = ["train", collection / "clicks.parquet", "--features", collection / "train.txt",
             "--steps", 20, "--hidden", 4, "--no-diagnosis"]  # fmt: skip
    assert command(*words, "--out", tmp_path / "m")[0] == 0
    assert dr.Model.load(tmp_path / "m" / "twin").training["method"] == "naive"
    assert command(*words, "--no-twin", "--out", tmp_path / "n")[0] == 0
    assert not (tmp_path / "n" / "twin").exists()


def test_curves_by_context_come_from_a_column_of_the_log(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    table = pq.read_table(collection / "clicks.parquet")
    sessions = table["session_id"].to_pylist()
    device = pa.array(["phone" if session % 3 else "desk" for session in sessions])
    pq.write_table(table.append_column("device", device), tmp_path / "log.parquet")
    words = ["train", tmp_path / "log.parquet", "--features", collection / "train.txt",
             "--steps", 40, "--hidden", 8, "--no-twin", "--out", tmp_path / "m"]  # fmt: skip
    code, _, _ = command(*words, "--position-model", "contextual", "--context", "device")
    assert code == 0
    held = json.loads((tmp_path / "m" / "propensity.json").read_text())
    assert held["context"] == "device"
    assert set(held["contexts"]) == {"phone", "desk"}
    given = ("--method", "ipw", "--propensity", tmp_path / "m" / "propensity.json")
    by_device = (*words[:-1], tmp_path / "again", *given, "--context", "device")
    assert command(*by_device)[0] == 0
    told = json.loads((tmp_path / "again" / "manifest.json").read_text())
    assert told["training"]["context"] == "device"
    code, _, err = command(*words, "--position-model", "contextual")
    assert code == 2
    assert "takes one --context" in err


def test_sigterm_saves_and_leaves_and_the_same_command_goes_on(
    collection: Path, tmp_path: Path
) -> None:
    def words(out: Path, steps: int) -> list[str]:
        train = ["train", collection / "clicks.parquet", "--features", collection / "train.txt"]
        rest = ["--steps", steps, "--hidden", 8, "--no-twin", "--method", "dla", "--out", out]
        return [sys.executable, "-m", "dualrank", *map(str, [*train, *rest])]

    out = tmp_path / "m"
    checkpoint = out / "checkpoint.safetensors"
    with subprocess.Popen(words(out, 100_000), stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: checkpoint.exists() or process.poll() is not None)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 143
    assert "asked to stop at" in err
    assert "the same command goes on" in err
    saved = read_checkpoint(checkpoint)
    reached = int(err.split("asked to stop at ")[1].split(" ")[0])
    assert saved.values["step"] == reached
    assert not (out / "manifest.json").exists()


def test_qrels_with_the_grades_of_the_data_change_nothing(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    data = read_letor(collection / "test.txt")
    queries = data.query_ids[data.query_of_document].tolist()
    rows = zip(queries, data.ids_of_documents().tolist(), data.grades.tolist(), strict=True)
    qrels = tmp_path / "test.qrels"
    qrels.write_text(
        "".join(f"{query} 0 {document} {grade:g}\n" for query, document, grade in rows)
    )
    words = ["evaluate", collection / "dla", collection / "test.txt", "--json"]
    by_grades, by_qrels = command(*words), command(*words, "--qrels", qrels)
    assert by_grades[0] == by_qrels[0] == 0
    assert by_grades[1] == by_qrels[1]


def test_evaluate_says_which_queries_do_not_count_and_why(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    data = dr.read_letor(collection / "test.txt")
    (first, document), *_ = data.pairs()
    second, other = data.pairs()[data.offsets[1]]
    qrels = tmp_path / "test.qrels"
    qrels.write_text(f"{first} 0 {document} 2\n{second} 0 {other} -2\nelsewhere 0 d 1\n")
    words = ["evaluate", collection / "dla", collection / "test.txt", "--qrels", qrels]
    code, out, _ = command(*words)
    assert code == 0
    assert "1 query without a relevant document counted as 0" in out
    assert f"{len(data) - 2} queries without judgments left out" in out
    assert "1 query of the judgments not in the data" in out
    assert "1 judgment below 0, which count as 0" in out


def test_a_model_is_exported_and_its_difference_printed(
    collection: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "model.onnx"
    code, text, _ = command("export", collection / "dla", "--to", "onnx", "--out", out, "--json")
    assert code == 0
    assert 0 <= json.loads(text)["max_difference"] <= 1e-5
    code, text, _ = command("export", collection / "dla", "--to", "vespa", "--out", out, "--force")
    assert code == 0
    assert "model.rank-profile.txt has the rank profile" in text
    code, _, err = command("export", collection / "dla", "--to", "solr", "--out", out, "--force")
    assert code == 2
    assert err.rstrip().endswith("Solr has no elu: train with --activation relu")
    code, _, err = command(
        "export", collection / "dla", "--to", "opensearch", "--out", out, "--force"
    )
    assert code == 2
    assert err.rstrip().endswith("train with --ranker trees or --ranker linear")
    labels = tmp_path / "labels.txt"
    words = ["--log", collection / "clicks.parquet", "--features", collection / "train.txt"]
    code, _, _ = command("export", collection / "dla", "--to", "letor", "--out", labels, *words)
    assert code == 0
    graded = read_letor(labels)
    assert set(graded.grades.tolist()) == {0, 1, 2, 3, 4}
    weights = (tmp_path / "labels.txt.weights").read_text().split()
    assert len(weights) == graded.document_count
    code, _, _ = command(
        "export",
        collection / "dla",
        "--to",
        "letor",
        "--out",
        labels,
        *words,
        "--grades",
        0,
        "--force",
    )
    assert code == 0
    assert len(set(read_letor(labels).grades.tolist())) > 5
    labels = tmp_path / "others.txt"
    code, _, err = command("export", collection / "dla", "--to", "letor", "--out", labels)
    assert code == 2
    assert "needs the click log, and the features of its documents" in err
    code, _, err = command("export", collection / "naive", "--to", "letor", "--out", labels, *words)
    assert code == 2
    assert "has no propensities" in err


def test_auto_says_what_it_took_and_why(collection: Path, command: Command, tmp_path: Path) -> None:
    words = ("train", collection / "clicks.parquet", "--features", collection / "train.txt",
             "--method", "auto", "--ranker", "linear", "--steps", 20,
             "--out", tmp_path / "m")  # fmt: skip
    code, out, _ = command(*words, "--json")
    assert code == 0
    choice = json.loads(out)["auto"]
    assert choice["chosen"] == " + ".join(choice["weights"])
    assert {"auto", "imitation", "grounded"} <= set(choice["leads"])
    better = choice["leads"]["auto"]["gain"] >= 0
    assert f"standard errors {'better' if better else 'worse'} than naive" in choice["why"]
    assert not list((tmp_path / "m").glob("checkpoint*"))
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert manifest["training"]["auto"] == choice


def test_scenarios_print_a_table(command: Command, tmp_path: Path) -> None:
    words = ("reproduce", "scenarios", "--preset", "tiny", "--seeds", 1, "--steps", 20)
    code, out, _ = command(*words, "--only", "few-sessions", "--out", tmp_path, "--jobs", 1)
    assert code == 0
    assert "1,000 sessions only" in (tmp_path / "table.md").read_text()
    assert "1 seed." in " ".join(out.split())
    code, _, err = command(*words, "--only", "weather", "--out", tmp_path)
    assert code == 2
    assert "unknown scenario 'weather'" in err
