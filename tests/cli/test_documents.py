import json
from functools import partial

import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_in):
    root = tmp_path_factory.mktemp("pages")
    pages = {
        "cats.html": "<title>Cats</title><p>All about cats and their food",
        "dogs.html": "<title>Dogs</title><p>Dogs chase cats",
        "empty.html": "",
        "picture.html": "\x00\x01\x02\x03" * 400,
    }
    (root / "crawl").mkdir()
    for name, text in pages.items():
        (root / "crawl" / name).write_text(text)
    queries = "query_id\tquery\n1\tcats\n2\tthe of\n3\telephants\n"
    (root / "queries.tsv").write_text(queries)
    (root / "lists.csv").write_text("query_id,doc_id,grade\n1,dogs.html,1\n1,gone.html,2\n9,x,0\n")
    assert run_in(root, "index", "crawl", "--out", "index", "--jobs", 1).returncode == 0
    return root


@pytest.fixture(scope="module")
def run(folder, run_in):
    """Run `dualrank …` in the folder."""
    return partial(run_in, folder)


def test_an_index_is_made_and_searched(run):
    result = run("index", "crawl", "--out", "index", "--json", "--jobs", 1)
    summary = json.loads(result.stdout)
    assert (summary["pages"], summary["in_index"]) == (3, 3)
    assert summary["unreadable"][0]["page"] == "picture.html"
    assert "pages that cannot be read: 1 in all (picture.html (it is binary data" in result.stderr
    hits = json.loads(run("search", "index", "cats", "--json").stdout)
    assert [hit["doc_id"] for hit in hits] == ["cats.html", "dogs.html"]
    assert "cats.html" in run("search", "index", "cats").stdout
    assert "no page of index" in run("search", "index", "zebra").stdout


def test_lists_of_many_queries(run, folder):
    words = ("search", "index", "--queries", "queries.tsv", "-k", 2, "--out", "found.parquet")
    result = run(*words)
    assert result.returncode == 0
    assert "queries without any page: 2 in all (2, 3)" in result.stderr
    table = pq.read_table(folder / "found.parquet").to_pydict()
    assert table["doc_id"] == ["cats.html", "dogs.html"]
    assert table["rank"] == [1, 2]


def test_features_of_the_best_pages(run, folder):
    words = ("features", "crawl", "queries.tsv", "--candidates", 5, "--out", "f.parquet")
    result = run(*words, "--stop-words", "--json")
    summary = json.loads(result.stdout)
    assert (summary["pairs"], summary["queries_without_pages"]) == (2, ["2", "3"])
    table = pq.read_table(folder / "f.parquet")
    assert table.num_columns == 35
    assert table["doc_id"].to_pylist() == ["cats.html", "dogs.html"]


def test_features_of_given_lists_name_what_is_unknown(run, folder):
    words = ("features", "crawl", "queries.tsv", "--candidates", "lists.csv", "--out", "g.parquet")
    result = run(*words)
    assert "1 pairs of 1 queries" in result.stdout
    assert "not there, and left out: 2 in all (gone.html of query 1, x of query 9)" in result.stderr
    assert pq.read_table(folder / "g.parquet")["grade"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("index", "nowhere", "--out", "i"), "there is no such file or folder"),
        (("index", "crawl", "--out", "crawl"), "there is something else"),
        (("index", "crawl", "--out", "i", "--stemmer", "klingon"), "no stemmer 'klingon'"),
        (("index", "crawl", "--out", "index", "--stop-words"), "cannot change now"),
        (("search", "crawl", "x"), "this is no index"),
        (("search", "index"), "give either words to look for"),
        (("search", "index", "x", "--field", "body"), "the field is one of"),
        (("features", "crawl", "no.tsv", "--out", "f.parquet"), "there is no such file"),
        (("features", "crawl", "queries.tsv", "--out", "f.csv"), "written as .parquet"),
        (
            ("features", "crawl", "queries.tsv", "--candidates", "0", "--out", "f.parquet"),
            "at least 1 page",
        ),
        (
            ("features", "crawl", "queries.tsv", "--candidates", "no.csv", "--out", "f.parquet"),
            "there is no such file",
        ),
    ],
)
def test_what_the_user_can_mend_ends_with_one_sentence(run, arguments, sentence):
    result = run(*arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--pages", "crawl"), "give also --queries PATH, --log PATH, --judgments PATH"),
        (("--data", "internet"), "unknown collection 'internet'"),
        (("--sessions", "many"), "--sessions takes whole numbers"),
        (("--user", "nobody"), "unknown user 'nobody'"),
        (("--methods", "magic"), "unknown method 'magic'"),
        (("--data", "nfcorpus", "--root", "nowhere"), "the collection nfcorpus is not there"),
    ],
)
def test_table_3_with_bad_input_ends_with_one_sentence(run, arguments, sentence):
    result = run("reproduce", "click-models", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_table_3_of_own_data_from_files(run, folder):
    words = ["red", "green", "blue", "sun", "moon", "star"]
    pages = [
        {"doc_id": f"d{i}", "url": f"x/{i}", "title": words[i % 6], "content": " ".join(words[i:])}
        for i in range(6)
    ]
    (folder / "p.jsonl").write_text("\n".join(map(json.dumps, pages)))
    queries = [f"q{i}\t{word}" for i, word in enumerate(words)]
    (folder / "q.tsv").write_text("query_id\tquery\n" + "\n".join(queries))
    rows = ["session_id,query_id,doc_id,position,clicked"]
    for session in range(40):
        for position in (1, 2, 3):
            clicked = int(position == 1 + session % 3)
            rows.append(f"{session},q{session % 2},d{position},{position},{clicked}")
    (folder / "c.csv").write_text("\n".join(rows))
    judged = [f"q{q},d{d},{int(q == d)}" for q in range(2, 6) for d in range(6)]
    (folder / "j.csv").write_text("query_id,doc_id,grade\n" + "\n".join(judged))
    own = ("--pages", "p.jsonl", "--queries", "q.tsv", "--log", "c.csv", "--judgments", "j.csv")
    few = ("--seeds", 1, "--steps", 20, "--jobs", 1)
    result = run("reproduce", "click-models", *own, *few, "--json", "--out", "t3")
    assert result.returncode == 0, result.stderr
    runs = json.loads(result.stdout)["runs"]
    assert {each["method"] for each in runs} >= {"dla", "click-model-dbn", "initial"}
    assert (folder / "t3" / "report.html").exists()
