"""How fast pages are read, and features computed over a real collection.

Run as `python -m benchmarks.documents`. Extraction is measured in processor time on one core, on
generated pages of 35 kB and, where it is installed, on the documentation of Debian's python3-doc.
The features need `DUALRANK_DATA` with `stanford_web`: the 98,998 pages of its collection, its 1,554
queries, and the 65 best pages of each, about 100,000 pairs, by the command as a user runs it.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import zstandard

from dualrank.pages.encoding import decode
from dualrank.pages.extraction import extract_fields

PAGE_BYTES = 35_000
PAGES_PER_SECOND = 500
DOCUMENTATION = Path("/usr/share/doc/python3/html")
SECONDS, GIBIBYTES = 60, 4
CANDIDATES = 65


def generated_pages(count: int) -> list[bytes]:
    """Pages of 35 kB with a menu, links, scripts, tables and paragraphs."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(5_000)])
    pages = []
    for _ in range(count):
        menu = "".join(f"<li><a href='/{w}'>{w}</a></li>" for w in rng.choice(words, 40))
        parts = [f"<html><head><title>{' '.join(rng.choice(words, 6))}</title>"]
        parts.append("<script>" + "var x = 1; " * 300 + "</script></head><body>")
        parts.append(f"<nav><ul>{menu}</ul></nav><main>")
        while sum(map(len, parts)) < PAGE_BYTES:
            text = " ".join(rng.choice(words, 60))
            parts.append(f"<div class='c'><h2>{text[:40]}</h2><p>{text} <b>and</b> more.</p></div>")
        pages.append("".join(parts).encode()[:PAGE_BYTES])
    return pages


def extraction(name: str, pages: list[bytes]) -> bool:
    """Print pages of 35 kB per second of processor time."""
    extract_fields(decode(pages[0]))
    started = time.process_time()
    for page in pages:
        extract_fields(decode(page))
    spent = time.process_time() - started
    rate = sum(map(len, pages)) / PAGE_BYTES / spent
    holds = rate >= PAGES_PER_SECOND
    print(
        f"{name:<40}{rate:8.0f} pages of 35 kB per second and core   "
        f"at least {PAGES_PER_SECOND}: {'holds' if holds else 'FAILS'}"
    )
    return holds


def lines(path: Path) -> Iterator[dict[str, object]]:
    """The rows of compressed JSON lines."""
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file)
        yield from map(json.loads, io.TextIOWrapper(stream, "utf-8"))


def features(root: Path, folder: Path) -> bool:
    """Run `dualrank features` on the collection, and print its time and memory."""
    pages, queries = folder / "pages.jsonl.zst", folder / "queries.jsonl"
    with pages.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as out:
        for row in lines(root / "collection_99k_pages.jsonl.zst"):
            name = str(row["name"])
            page = {"doc_id": name, "url": name.replace("_", "/"), "content": row["text"]}
            out.write(json.dumps(page).encode() + b"\n")
    asked = dict.fromkeys(str(row["query"]) for row in lines(root / "pairs.jsonl.zst"))
    queries.write_text(
        "\n".join(json.dumps({"query_id": str(i), "query": q}) for i, q in enumerate(asked))
    )
    words = ("features", pages, queries, "--candidates", CANDIDATES, "--jobs", 2, "--json")
    command = [sys.executable, "-m", "dualrank", *map(str, words), "--out", f"{folder}/f.parquet"]
    started = time.perf_counter()
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    wall = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The largest of three processes, three times: more than all of them can have had together.
    memory = 3 * usage.ru_maxrss / 2**20
    summary = json.loads(result.stdout)
    processor = usage.ru_utime + usage.ru_stime
    holds = processor / 2 <= SECONDS and memory <= GIBIBYTES
    print(
        f"features of {summary['pairs']:,} pairs over {summary['pages']:,} pages: "
        f"{wall:.0f} s, {processor:.0f} s of processor, under {memory:.1f} GiB   "
        f"two cores within {SECONDS} s and {GIBIBYTES} GiB: {'holds' if holds else 'FAILS'}"
    )
    return holds


def main() -> int:
    """Print what holds; 1 if something does not."""
    results = [extraction("generated pages", generated_pages(600))]
    if DOCUMENTATION.is_dir():
        real = [path.read_bytes() for path in sorted(DOCUMENTATION.resolve().rglob("*.html"))]
        results.append(extraction("python3-doc", real))
    root = Path(os.environ.get("DUALRANK_DATA", "none")) / "stanford_web"
    if root.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            results.append(features(root, Path(folder)))
    else:
        print("features: set DUALRANK_DATA to the folder that holds stanford_web/")
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
