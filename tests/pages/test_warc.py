"""Archives with damaged records: they are named, and the rest is read."""

import gzip
import io
import zlib
from contextlib import suppress
from uuid import UUID

import numpy as np
import pytest

pytest.importorskip("warcio")

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from dualrank.pages import sources, warc
from dualrank.pages.documents import Unreadable
from dualrank.pages.sources import find_pages


def records(count=5, compress=False):
    """Archives of a page each."""
    found = []
    for number in range(count):
        stream = io.BytesIO()
        writer = WARCWriter(stream, gzip=compress)
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.0")
        page = io.BytesIO(f"<title>Page {number}</title>some words".encode())
        url = f"http://x.org/{number}"
        record = writer.create_warc_record(url, "response", payload=page, http_headers=headers)
        record.rec_headers.replace_header("WARC-Record-ID", f"<urn:uuid:{UUID(int=number)}>")
        record.rec_headers.replace_header("WARC-Date", "2018-07-08T00:00:00Z")
        writer.write_record(record)
        found.append(stream.getvalue())
    return found


def read(tmp_path, content, name="x.warc"):
    path = tmp_path / name
    path.write_bytes(content)
    pages = [page for batch in find_pages(path).batches() for page in batch.read()]
    named = [page for page in pages if isinstance(page, Unreadable)]
    return [page.doc_id[-1] for page in pages if page not in named], named


def length_of(record, written):
    before, _, after = record.partition(b"Content-Length: ")
    return before + b"Content-Length: " + written + after[after.index(b"\r\n") :]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda record: length_of(record, b"1000000000000000"), "is not of 1000000000000000 bytes"),
        (lambda record: length_of(record, b"-5"), "does not say its length"),
        (lambda record: length_of(record, b"9" * 5000), "does not say its length"),
        (lambda record: length_of(record, b"7"), "is not of 7 bytes"),
        (lambda record: length_of(record, b"200"), "is not of 200 bytes"),
        (lambda record: record.replace(b"WARC/1.0", b"WXRC/1.0"), "no record begins there"),
        (lambda record: record.replace(b"WARC-Target-URI", b"WARC-Target-XXX"), "is damaged"),
        (lambda record: record[:100] + b"\r\n\r\n", "does not say its length"),
        (lambda record: b"\x00\xff" * 50_000, "no record begins there"),
    ],
)
def test_a_damaged_record_is_named_and_the_others_are_read(tmp_path, damage, said):
    parts = records()
    start = len(parts[0] + parts[1])
    parts[2] = damage(parts[2])
    found, (named, *_) = read(tmp_path, b"".join(parts))
    assert found == ["0", "1", "3", "4"]
    assert named.place == f"x.warc at byte {start}"
    assert said in named.reason


@pytest.mark.parametrize("flipped", [0x55, 0x01, 0x80])
def test_a_damaged_gzip_member_is_named_once_and_the_others_are_read(tmp_path, flipped):
    """Whichever byte it is, of those that gzip vouches for."""
    parts = records(compress=True)
    start = len(parts[0] + parts[1])
    for place in range(len(parts[2])):
        broken = bytearray(parts[2])
        broken[place] ^= flipped
        with suppress(OSError, EOFError, zlib.error):
            gzip.decompress(broken)
            continue
        found, named = read(tmp_path, b"".join([*parts[:2], broken, *parts[3:]]), "x.warc.gz")
        assert found == ["0", "1", "3", "4"], place
        assert [each.place for each in named] == [f"x.warc.gz at byte {start}"], place


def test_a_member_that_does_not_end_is_named_once_though_its_record_is_wrong_too(tmp_path):
    """So it is where a byte that says how the packing ends is another."""
    first, second = records(2)
    packing = zlib.compressobj(wbits=31)
    unended = packing.compress(length_of(second, b"7")) + packing.flush(zlib.Z_SYNC_FLUSH)
    whole = gzip.compress(first)
    found, named = read(tmp_path, whole + unended, "x.warc.gz")
    assert found == ["0"]
    assert [each.place for each in named] == [f"x.warc.gz at byte {len(whole)}"]
    assert "is not of 7 bytes" in named[0].reason


@pytest.mark.parametrize("place", [0, 1, 2, 30])
def test_a_damaged_first_member_is_passed_over(tmp_path, place):
    parts = records(compress=True)
    broken = bytearray(parts[0])
    broken[place] ^= 0x55
    found, named = read(tmp_path, bytes(broken) + b"".join(parts[1:]), "x.warc.gz")
    assert found == ["1", "2", "3", "4"]
    assert named[0].place == "x.warc.gz at byte 0"


def test_an_archive_that_was_packed_as_a_whole_is_read(tmp_path):
    assert read(tmp_path, gzip.compress(b"".join(records())), "x.warc.gz")[0] == list("01234")


@pytest.mark.parametrize("compress", [False, True])
def test_mutated_archives_lose_nothing_without_a_word(tmp_path, compress):
    whole = b"".join(records(4, compress))
    rng = np.random.default_rng(11)
    for _ in range(60):
        content = np.frombuffer(whole, np.uint8).copy()
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        found, named = read(tmp_path, content.tobytes(), "x.warc.gz" if compress else "x.warc")
        assert len(found) >= 3
        assert len(named) <= 2


def test_a_member_that_unpacks_to_far_more_than_it_is_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(warc, "UNPACKED_UNASKED", 1 << 20)
    parts = records(3, compress=True)
    head = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 50000000\r\n\r\n"
    parts.insert(1, gzip.compress(head + bytes(50_000_000)))
    found, (named,) = read(tmp_path, b"".join(parts), "x.warc.gz")
    assert found == ["0", "1", "2"]
    assert "they unpack to more than 200 times their size" in named.reason


def test_a_page_that_unpacks_to_far_more_than_it_is_is_cut(tmp_path, monkeypatch):
    stream = io.BytesIO()
    writer = WARCWriter(stream, gzip=False)
    kinds = [("Content-Type", "text/html"), ("Content-Encoding", "gzip")]
    headers = StatusAndHeaders("200 OK", kinds, protocol="HTTP/1.0")
    page = io.BytesIO(gzip.compress(b"<title>A</title>" + b"word " * 20_000_000))
    writer.write_record(
        writer.create_warc_record("http://x.org/9", "response", payload=page, http_headers=headers)
    )
    assert read(tmp_path, stream.getvalue()) == (["9"], [])


@pytest.mark.parametrize("content", [b"WARC/1.0\n\n" * 5000, b"\x1f\x8b\x08" * 50_000])
def test_a_file_of_little_but_damage_is_given_up(tmp_path, content):
    found, named = read(tmp_path, content)
    assert found == []
    assert len(named) <= warc.MOST_DAMAGED + 1
    assert "the rest is not read" in named[-1].reason


def test_a_crash_of_the_parser_is_no_crash_of_the_reader(tmp_path, monkeypatch):
    def fail(record):
        raise zlib.error("whatever")

    monkeypatch.setattr(sources, "_html_of_record", fail)
    found, named = read(tmp_path, b"".join(records(2)))
    assert found == []
    assert [page.reason for page in named] == ["the response is damaged (error)"] * 2
