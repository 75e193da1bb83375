import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from dualrank.errors import DataError
from dualrank.pages.documents import Unreadable
from dualrank.pages.sources import HeldPages, find_pages


def read(source):
    return [page for batch in source.batches() for page in batch.read()]


def test_a_folder_of_html_is_read_with_all_below_it(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.HTM").write_text("<title>B</title><p>words")
    (tmp_path / "sub" / "a.html").write_bytes("<p>Größe".encode("latin-1"))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    pages = read(find_pages(tmp_path))
    assert [page.doc_id for page in pages] == ["b.HTM", "sub/a.html"]
    assert pages[1].fields.url == "sub/a.html"
    assert pages[1].fields.content == "Größe"


ROWS = [
    {"doc_id": "1", "url": "http://x.org/1", "html": "<title>One</title>text"},
    {"doc_id": "2", "url": "http://x.org/2", "title": "Two", "content": "plain <b>"},
    {"url": "http://x.org/3", "title": "Three"},
]


def check_rows(pages):
    assert [page.doc_id for page in pages] == ["1", "2", "http://x.org/3"]
    assert [page.fields.title for page in pages] == ["One", "Two", "Three"]
    assert [page.fields.content for page in pages] == ["text", "plain <b>", ""]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("p.jsonl", bytes),
        ("p.ndjson.gz", gzip.compress),
        ("p.jsonl.zst", lambda data: zstandard.compress(data)),
    ],
)
def test_json_lines(tmp_path, name, pack):
    text = "\n".join(json.dumps(row) for row in ROWS) + "\n\n"
    (tmp_path / name).write_bytes(pack(text.encode()))
    check_rows(read(find_pages(tmp_path / name)))


def test_parquet_with_text_or_bytes(tmp_path):
    table = pa.Table.from_pylist([{**dict.fromkeys(ROWS[0] | ROWS[1]), **row} for row in ROWS])
    pq.write_table(table, tmp_path / "p.parquet")
    check_rows(read(find_pages(tmp_path / "p.parquet")))
    raw = pa.table({"doc_id": [7], "url": ["u"], "html": ["é".encode("latin-1")]})
    pq.write_table(raw, tmp_path / "raw.parquet")
    (page,) = read(find_pages(tmp_path / "raw.parquet"))
    assert (page.doc_id, page.fields.content) == ("7", "é")


def warc(*records, compress=True):
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=compress)
    for url, status, kind, body in records:
        headers = StatusAndHeaders(status, [("Content-Type", kind)], protocol="HTTP/1.1")
        record = writer.create_warc_record(url, "response", io.BytesIO(body), http_headers=headers)
        writer.write_record(record)
    return out.getvalue()


def test_warc_gives_its_html_responses(tmp_path):
    data = warc(
        ("http://x.org/a", "200 OK", "text/html; charset=koi8-r", "<p>язык".encode("koi8-r")),
        ("http://x.org/b", "404 Not Found", "text/html", b"gone"),
        ("http://x.org/c", "200 OK", "image/png", b"\x89PNG"),
        ("http://x.org/d", "200 OK", "text/html", b"<title>D</title>"),
    )
    (tmp_path / "c.warc.gz").write_bytes(data)
    pages = read(find_pages(tmp_path))
    assert [(p.doc_id, p.fields.content) for p in pages] == [
        ("http://x.org/a", "язык"),
        ("http://x.org/d", ""),
    ]


@pytest.mark.parametrize("compress", [True, False])
def test_a_cut_warc_gives_what_it_has_and_names_itself(tmp_path, compress):
    body = b"<title>A</title>" + bytes(range(32, 127)) * 50
    data = warc(
        *[(f"http://x.org/{i}", "200 OK", "text/html", body) for i in range(5)], compress=compress
    )
    (tmp_path / "c.warc.gz").write_bytes(data[: len(data) * 3 // 4])
    pages = read(find_pages(tmp_path))
    assert len(pages) >= 3
    assert pages[0].fields.title == "A"


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path):
    lines = [
        '{"doc_id": "good", "title": "x"}',
        "{broken",
        "[1]",
        '{"title": "nobody"}',
        '{"doc_id": "empty"}',
        '{"doc_id": "list", "title": ["x"]}',
        '{"doc_id": "last", "html": ""}',
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    pages = read(find_pages(tmp_path))
    bad = [page for page in pages if isinstance(page, Unreadable)]
    assert [page.place for page in bad] == [f"p.jsonl:{n}" for n in (2, 3, 4, 5, 6)]
    assert "not JSON" in bad[0].reason
    assert "neither doc_id nor url" in bad[2].reason
    assert "neither html nor title" in bad[3].reason
    assert [page.doc_id for page in pages if not isinstance(page, Unreadable)] == ["good", "last"]


def test_binary_files_that_call_themselves_html_are_named(tmp_path):
    (tmp_path / "a.html").write_bytes(b"%PDF-1.4 ...")
    (tmp_path / "b.html").write_bytes(bytes(range(1, 32)) * 40)
    (tmp_path / "c.html").write_bytes("<p>zwei".encode("utf-16"))
    one, two, three = read(find_pages(tmp_path))
    assert "binary" in one.reason
    assert "binary" in two.reason
    assert three.fields.content == "zwei"


def test_a_broken_file_is_named_and_the_next_one_read(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"doc_id": "x"}' * 99)[:30])
    (tmp_path / "c.html").write_text("ok")
    first, second, third = read(find_pages(tmp_path))
    assert first.place == "a.parquet"
    assert "Parquet" in first.reason
    assert second.place == "b.jsonl.gz"
    assert third.fields.content == "ok"


def test_a_page_beyond_the_limit_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.pages.sources.MAX_BYTES", 10)
    (tmp_path / "a.html").write_text("one two three four")
    (page,) = read(find_pages(tmp_path))
    assert page.fields.content == "one two th"


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(DataError, match="no pages there"):
        find_pages(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        find_pages(tmp_path / "none")


def test_progress_ends_at_the_total(tmp_path):
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text("x" * 50)
    (tmp_path / "c.jsonl").write_text('{"doc_id": "1", "title": "x"}\n')
    source = find_pages(tmp_path)
    assert [*source.batches()][-1].done == source.total
    held = HeldPages([{"doc_id": str(i), "title": "x"} for i in range(600)])
    assert [batch.done for batch in held.batches()] == [250, 500, 600]


def test_hostile_lines_are_named_and_the_rest_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.pages.sources.LONGEST_LINE", 1 << 20)
    hostile = [b"[" * 100_000, b'{"a":' * 100_000, b"x" * (3 << 20), b"9" * 5000, b"\xff\xfe"]
    lines = [b'{"doc_id": "a", "title": "A"}', *hostile, b'{"doc_id": "b", "title": "B"}']
    (tmp_path / "p.jsonl").write_bytes(b"\n".join(lines))
    pages = read(find_pages(tmp_path / "p.jsonl"))
    assert [page.doc_id for page in pages if not isinstance(page, Unreadable)] == ["a", "b"]
    named = [page for page in pages if isinstance(page, Unreadable)]
    assert [page.place for page in named] == [f"p.jsonl:{n}" for n in (2, 3, 4, 5, 6)]
    assert named[2].reason == "the line is longer than 1048576 bytes"


def test_lines_before_damage_are_read(tmp_path):
    line = b'{"doc_id": "%d", "title": "A"}\n'
    packed = gzip.compress(b"".join(line % i for i in range(20_000)))
    (tmp_path / "p.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    *pages, last = read(find_pages(tmp_path / "p.jsonl.gz"))
    assert len(pages) > 5000
    assert "damaged or end too early" in last.reason


def test_lines_that_unpack_to_far_more_than_they_are_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.data.letor.source.UNPACKED_UNASKED", 1 << 20)
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(b" \n" * 5_000_000))
    (page,) = read(find_pages(tmp_path / "p.jsonl.gz"))
    assert "unpack to more than 200 times their size" in page.reason


def test_a_text_that_many_rows_share_is_not_held_as_often(tmp_path):
    rows = 250
    names = pa.array([str(number) for number in range(rows)])
    shared = pa.DictionaryArray.from_arrays([0] * rows, ["<p>" + "x " * 10_000_000])
    pq.write_table(pa.table({"doc_id": names, "html": shared}), tmp_path / "p.parquet")
    before = pa.total_allocated_bytes()
    batch = next(find_pages(tmp_path / "p.parquet").batches())
    assert pa.total_allocated_bytes() - before < 200 << 20
    assert len(next(iter(batch.read())).fields.content) < 2 << 20


def test_mutated_tables_of_pages_lose_nothing_without_a_word(tmp_path):
    rows = [{"doc_id": f"d{i}", "url": f"x/{i}", "title": "t", "content": "c"} for i in range(9)]
    path = tmp_path / "p.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(1)
    for _ in range(80):
        content = whole.copy()
        content[rng.integers(len(content), size=2)] = rng.integers(256, size=2)
        path.write_bytes(content)
        assert read(find_pages(path))


def test_bytes_without_a_type_are_text(tmp_path):
    row = {"doc_id": b"d", "url": b"x/1", "title": "Müller".encode(), "content": b"words"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "p.parquet")
    (page,) = read(find_pages(tmp_path / "p.parquet"))
    assert (page.doc_id, page.fields.url, page.fields.title) == ("d", "x/1", "Müller")


def test_lines_without_end_that_hold_nothing_are_given_up(tmp_path):
    (tmp_path / "p.jsonl").write_bytes(b"\n" * 200_000)
    (page,) = read(find_pages(tmp_path / "p.jsonl"))
    assert page.reason == "100001 empty lines, one after the other"
