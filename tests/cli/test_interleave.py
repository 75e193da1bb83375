"""`dualrank interleave build` and `read`, as a user runs them."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from dualrank.decisions.interleaving_lists import read_lists
from dualrank.storage import sha256_of_file

EXAMINED = (0.7, 0.6, 0.5, 0.4)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two TREC runs, of which new has the good documents d0 to d2 on top."""
    monkeypatch.chdir(tmp_path)
    for name in ("old", "new"):
        lines = []
        for query in range(45):
            rng = np.random.default_rng([query, len(name) + ord(name[0])])
            order = rng.permutation(6) if name == "old" else np.arange(6)
            lines += [f"q{query} Q0 d{d} {r} {6 - r} x" for r, d in enumerate(order, 1)]
        (tmp_path / f"{name}.run").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def served(command, folder):
    """Lists, and 900 sessions that were shown one of them each."""
    code, _, err = command(
        "interleave", "build", "old.run", "new.run", "--out", "lists.parquet", "--depth", 4
    )
    assert (code, err) == (0, "")
    lists, rng = read_lists(folder / "lists.parquet"), np.random.default_rng(0)
    rows = ["session_id,query_id,doc_id,position,clicked,interleaving,timestamp"]
    for session in range(900):
        query = f"q{rng.integers(45)}"
        number = rng.integers(len(lists.lists[query]))
        for place, document in enumerate(lists.lists[query][number].documents):
            clicked = rng.random() < EXAMINED[place] * (0.6 if document < "d3" else 0.1)
            day = 1 + session // 90
            rows.append(
                f"s{session},{query},{document},{place + 1},{int(clicked)},{number + 1},"
                f"2026-05-{day:02d}T12:00:00"
            )
    (folder / "clicks.csv").write_text("\n".join(rows))
    return folder


def test_lists_say_how_they_were_made(command, folder):
    words = ("interleave", "build", "old.run", "new.run", "--out", "lists.parquet", "--json")
    code, text, _ = command(*words, "--seed", 7, "--depth", 3, "--per-query", 5)
    assert code == 0
    said = json.loads(text)
    assert said["arms"] == ["old", "new"]
    assert (said["seed"], said["lists"], said["queries"]) == (7, 270, 45)
    assert said["digests"]["old"] == sha256_of_file(folder / "old.run")
    table = pq.read_table("lists.parquet")
    assert table.column_names == [
        "query_id", "interleaving", "position", "doc_id", "arm", "credit", "probability",
    ]  # fmt: skip
    first = table.to_pylist()
    command(*words, "--seed", 7, "--depth", 3, "--per-query", 5)
    assert pq.read_table("lists.parquet").to_pylist() == first
    command(*words, "--seed", 8, "--depth", 3, "--per-query", 5)
    assert pq.read_table("lists.parquet").to_pylist() != first


def test_some_queries_and_optimised_lists(command, folder):
    (folder / "queries.txt").write_text("q3\nq5\nnot-there\n")
    code, text, _ = command(
        "interleave", "build", "old.run", "new.run", "--out", "o.parquet", "--way", "optimised",
        "--queries", "queries.txt", "--arms", "now,next", "--depth", 4,
    )  # fmt: skip
    assert code == 0
    assert "of 2 queries, optimised of now, next" in text
    assert "1 query not ranked by every arm left out" in text
    assert set(read_lists(folder / "o.parquet").lists) == {"q3", "q5"}


def test_three_arms(command, folder):
    (folder / "third.run").write_text((folder / "old.run").read_text())
    code, text, _ = command(
        "interleave", "build", "old.run", "new.run", "third.run", "--out", "l.parquet"
    )
    assert code == 0
    assert "810 lists of 45 queries, team-draft of old, new, third" in text


def test_the_better_arm_is_named_and_the_report_written(command, served):
    words = ("interleave", "read", "clicks.csv", "--lists", "lists.parquet")
    code, text, _ = command(*words, "--out", "report")
    assert code == 0
    assert "new is better than old: +0." in text.replace("\n", " ")
    assert "decided on 2026-05-0" in text.replace("\n", " ")
    page = (served / "report" / "report.html").read_text()
    assert "new is better than old" in page
    assert "<svg" in page
    assert "Queries that prefer one of them most" in page
    numbers = json.loads((served / "report" / "comparison.json").read_text())
    assert numbers["pairs"][0]["better"] == "new"
    assert len(numbers["pairs"][0]["looks"]) == 10
    assert (served / "report" / "queries.csv").exists()
    code, text, _ = command(*words, "--json", "--until", 900, "--arms", "new,old")
    pair = json.loads(text)["pairs"][0]
    assert (pair["first"], pair["better"]) == ("new", "new")
    code, _, err = command(*words, "--out", "report")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("build", "old.run", "--out", "l.parquet"), "two arms or more; give another run"),
        (("build", "old.run", "none.run", "--out", "l.parquet"), "there is no such file"),
        (("build", "old.run", "new.run", "--out", "l.csv"), "is written as .parquet"),
        (("build", "old.run", "old.run", "--out", "l.parquet"), "give --arms a name for each"),
        (
            ("build", "old.run", "new.run", "--out", "l.parquet", "--way", "balanced"),
            "way is team-draft or optimised, not 'balanced'",
        ),
        (
            ("build", "old.run", "new.run", "--out", "l.parquet", "--arms", "a"),
            "arms names 1 for 2 runs",
        ),
        (
            ("build", "old.run", "new.run", "--out", "l.parquet", "--queries", "old.run"),
            "none of these queries is ranked by every arm",
        ),
        (("build", "empty.run", "new.run", "--out", "l.parquet"), "empty.run: the run is empty"),
        (("read", "clicks.csv"), "or give --lists with the lists that were shown"),
        (("read", "clicks.csv", "--column", "arm=x"), "there is no column 'x' (as arm)"),
        (("read", "clicks.csv", "--lists", "other.parquet"), "other.parquet: there is no such"),
        (
            ("read", "clicks.csv", "--lists", "lists.parquet", "--arms", "old,next"),
            "arm 'next' is in no impression; there are old, new",
        ),
        (
            ("read", "clicks.csv", "--lists", "lists.parquet", "--until", 10),
            "is a number of sessions, 50 or more",
        ),
        (
            ("read", "moved.csv", "--lists", "lists.parquet"),
            "900 of 900 sessions show a list that is not among those that --lists names",
        ),
        (("read", "clicks.csv", "--column", "arm=query_id"), "more than 20 values"),
        (("read", "old.run"), "a log is a .parquet"),
    ],
)
def test_what_goes_wrong_is_one_sentence(command, served, words, sentence):
    (served / "empty.run").write_text("")
    (served / "moved.csv").write_text(
        re.sub(r",d(\d)", r",e\1", (served / "clicks.csv").read_text())
    )
    code, out, err = command("interleave", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_runs_are_not_written_over(command, folder):
    (folder / "a.parquet").write_bytes(b"x")
    code, _, err = command("interleave", "build", "old.run", "a.parquet", "--out", "a.parquet")
    assert code == 2
    assert "this would write over a.parquet, which is read" in err
