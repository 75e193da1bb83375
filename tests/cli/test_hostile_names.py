"""Names of a log, of pages and of files are text, whatever they are made of."""

import csv
import json
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.cli.app import main
from dualrank.cli.terminal import answer, one_bar
from dualrank.report import Row, Table
from dualrank.showing.visible import visible

NAMES = [
    "[red]", "[/x]", "[link=http://x.org]y", "[bold", "a\x1b[2J\x1b]0;title\x07", "b\rc", "d\ne",
    "\x9b31mf", "\u202egnp.exe", "\u2066g", "h\x00i", "=1+2", "+3", "-4", "@5", "\tj",
    "<script>alert(1)</script>", "'><b>", "$x^$", "{task}", "%s%d",
]  # fmt: skip
QUERIES = NAMES[:12]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log and features whose every name is hostile."""
    root = tmp_path_factory.mktemp("hostile")
    rows, session = [], 0
    for query in QUERIES:
        for turn in range(40):
            shown = NAMES[turn % 5 :] + NAMES[: turn % 5]
            for position, document in enumerate(shown[:6], start=1):
                clicked = (turn + position) % 4 == 0
                rows.append((f"s{session}", query, document, position, clicked, NAMES[turn % 6]))
            session += 1
    columns = ("session_id", "query_id", "doc_id", "position", "clicked", "device")
    table = pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))
    pq.write_table(table, root / "[red]log.parquet")
    pairs = [(query, document) for query in QUERIES for document in NAMES]
    features = {
        "query_id": [query for query, _ in pairs],
        "doc_id": [document for _, document in pairs],
        "[red]\x1b[31m": [float(i % 7) for i in range(len(pairs))],
        "grade": [float(i % 3) for i in range(len(pairs))],
        "[/x]": [float(i % 5) for i in range(len(pairs))],
    }
    pq.write_table(pa.table(features), root / "[x]features.parquet")
    pages = [
        {"doc_id": name, "url": name, "title": f"cats {name}", "content": "cats and dogs"}
        for name in NAMES
    ]
    (root / "pages.jsonl").write_text("\n".join(map(json.dumps, pages)))
    (root / "queries.tsv").write_text("query_id\tquery\n[red]\x1b[31m\tcats\n[/x]\tzebra\n")
    return root


def is_harmless(text):
    return not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"]


LOG, FEATURES = "[red]log.parquet", "[x]features.parquet"
COMMANDS = [
    ("reduce", LOG, "--out", "log.parquet", "--context", "device"),
    ("reduce", LOG, "day=2026-11-01", "--append", "[red]days", "--context", "device"),
    ("reduce", "[red]days", "--out", "days.parquet"),
    ("reduce", LOG, "--shards", 2, "--features", FEATURES, "--out", "[red]shards",
     "--max-bad-share", 1),
    ("train", LOG, "--features", FEATURES, "--out", "[m]", "--steps", 5, "--method", "dla",
     "--ranker", "linear", "--max-bad-share", 1),
    ("update", "[m]", LOG, "--features", FEATURES, "--out", "[m2]", "--steps", 2,
     "--max-bad-share", 1),
    ("rank", "[m]", FEATURES, "--out", "run.csv"),
    ("rank", "[m]", FEATURES, "--out", "[red]run"),
    ("evaluate", "[red]run", FEATURES, "--against", "[red]run/part-*.parquet"),
    ("evaluate", "[m]", FEATURES, "--metrics", "ndcg@3"),
    ("evaluate", "[m]", FEATURES, "--displayed", LOG, "--against", "run.csv"),
    ("estimate", LOG, "--model", "run.csv", "--features", FEATURES, "--context", "device",
     "--propensity", "harvested", "--only-displayed", "--resamples", 50, "--out", "[e]"),
    ("export", "[m]", "--to", "opensearch", "--out", "[engine].json"),
    ("clicks", "fit", LOG, "--out", "ubm.parquet"),
    ("clicks", "compare", LOG, "--models", "pbm,ubm"),
    ("clicks", "relevance", LOG, "--out", "[relevance].csv"),
    ("judge", LOG, "--out", "[judged].csv", "--by", "pbm"),
    ("diagnose", LOG, "--features", FEATURES, "--context", "device", "--out", "[d]"),
    ("propensity", LOG, "--methods", "pbm"),
    ("plan-swaps", LOG, "--out", "[p]", "--precision", "0.9"),
    ("interleave", "build", "run.csv", "run.csv", "--arms", "[red],\x1b[31m", "--out", "l.parquet"),
    ("interleave", "read", LOG, "--column", "arm=device", "--out", "[i]"),
    ("index", "pages.jsonl", "--out", "[index]"),
    ("search", "[index]", "cats"),
    ("search", "[index]", "zebra[/x]\x1b"),
    ("features", "pages.jsonl", "queries.tsv", "--candidates", 5, "--out", "f.parquet"),
    ("features", "pages.jsonl", "queries.tsv", "--candidates", LOG, "--out", "g.parquet"),
]  # fmt: skip
REFUSED = [
    ("rank", "[m]", "[no]\x1b[31m\n.parquet", "--out", "x.csv"),
    ("rank", "[m]", FEATURES, "--out", "[no]\x1b[31m\n.x"),
    ("rank", "[m]", FEATURES, "--out", "no.run"),
    ("evaluate", "[no]\x1b[31m\n*", FEATURES),
    ("interleave", "read", LOG, "--column", "arm=device", "--arms", "[red],\x1b[31m"),
    ("judge", LOG, "--out", "judged.qrels", "--by", "pbm"),
    ("diagnose", LOG, "--context", "no\x1b[31m[red]"),
    ("plan-swaps", LOG, "--precision", "[red]\x1b[31m\n"),
    ("reduce", "[no]\x1b[31m\n.parquet", "--out", "x.parquet"),
    ("reduce", LOG, "--shards", 2, "--features", "[no]\x1b[31m", "--out", "[red]shards"),
    ("reduce", LOG, "day=[red]\x1b[31m", "--append", "[red]days"),
    ("reduce", LOG, "day=../\x1b[31m\n", "--append", "[red]days"),
    ("reduce", LOG, "two[red]\x1b[31m\n", "--append", "[red]days"),
    ("reduce", "[no]\x1b[31m\n", "--append", "[red]days"),
    ("reduce", LOG, "day=2026-11-02", "--append", "[red]days", "--context", "position"),
    ("reduce", "--append", "[red]days", "--drop", "\x1b[31m/../x"),
    ("dance[/x]\x1b",),
]


def test_every_command_prints_hostile_names_as_text(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for words in (*COMMANDS, *REFUSED):
        code, out, err = command(*words)
        assert code == (2 if words in REFUSED else 0), (words, err)
        assert is_harmless(out), (words, out)
        assert is_harmless(err), (words, err)
        assert code == 0 or len(err.strip().splitlines()) == 1, err
    assert "[red]" in command("search", "[index]", "cats")[1]
    pages = ("[d]/diagnosis.html", "[e]/queries.md")
    for page in (*folder.glob("*/report.html"), *map(folder.joinpath, pages)):
        text = page.read_text()
        assert "<script>alert" not in text
        assert is_harmless(text)


def test_bars_show_names_with_brackets(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with one_bar("reading [/x]\x1b]0;t\x07.parquet") as report:
        report(1, 2)
    shown = capsys.readouterr().err
    assert r"reading [/x]\x1b]0;t\x07.parquet" in shown
    assert "\x1b]0;" not in shown


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_sentences_show_every_name(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    answer(False, None, f"about {name}", Table((name,), (Row(name, (name,)),), corner=name))
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert len(shown.splitlines()) == 4
    assert shown.count(visible(name)) == 5


def test_what_is_written_out_tells_characters_apart():
    assert visible("é 中 \u200d ‘’ − 👩\u200d🔬") == "é 中 \u200d ‘’ − 👩\u200d🔬"
    assert visible("\udcff\x85\u2028") == r"\udcff\x85\u2028"


def test_log_messages_are_one_line(monkeypatch, capsys, tmp_path):
    import logging
    import sys

    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(sys, "argv", ["dualrank", "--version"])
    with pytest.raises(SystemExit):
        main()
    logging.getLogger("dualrank").warning("found %s", "x\x1b[31m\ndualrank: forged")
    assert capsys.readouterr().err == "dualrank: found x\\x1b[31m\\ndualrank: forged\n"


def test_csv_keeps_ids_as_they_are(folder, command, monkeypatch):
    """No sign before `=` or `+`: programs read these files, and it would be another id."""
    monkeypatch.chdir(folder)
    words = ("clicks", "relevance", LOG, "--out", "ids.csv", "--model", "pbm")
    assert command(*words, "--force")[0] == 0
    with (folder / "ids.csv").open(newline="") as file:
        found = {row["doc_id"] for row in csv.DictReader(file)}
    shown = {name for turn in range(5) for name in (NAMES[turn:] + NAMES[:turn])[:6]}
    assert found == shown
