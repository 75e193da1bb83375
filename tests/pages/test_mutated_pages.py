"""Pages that are cut, stirred, nested and mislabelled neither crash extraction nor hold it up.

`DUALRANK_MUTATED_PAGES=10000` sets how many; a few hundred without it.
"""

import os
import time

import numpy as np
import pytest

from dualrank.pages.encoding import decode
from dualrank.pages.extraction import MAX_BYTES, extract_fields

PAGES = int(os.environ.get("DUALRANK_MUTATED_PAGES", "300"))
ENCODINGS = ["utf-8", "latin-1", "gbk", "shift_jis", "utf-16", "koi8-r", "utf-7", "hex", "nonsense"]
LONGEST_SECONDS = 20
NAMES = """
    div p b a i font table tr td ul li dl dt dd h1 form select option optgroup button span header
    nav aside main article script style svg math title body html template frameset ruby rt object
    applet marquee textarea plaintext iframe noscript input x custom-element
"""
TAGS = NAMES.split()
PAGE = (
    "<!DOCTYPE html><html><head><meta charset=utf-8><title>Ein Titel – 標題</title></head><body>"
    "<header><nav><ul><li><a href='/'>Home</a></li></ul></nav></header><main><h1>Überschrift</h1>"
    "<p>Some <b>bold</b> text &amp; more, 中文字 и русский текст.</p><table><tr><td>1<td>2</table>"
    "<script>var a = '<p>';</script></main><footer>© 2020</footer></body></html>"
).encode()


def cut(rng, page):
    return page[: rng.integers(len(page))]


def stirred(rng, page):
    data = np.frombuffer(page, np.uint8).copy()
    places = rng.integers(len(data), size=rng.integers(1, len(data)))
    data[places] = rng.integers(256, size=len(places))
    return data.tobytes()


def noise(rng, page):
    return rng.bytes(rng.integers(1, 5000))


def shuffled(rng, page):
    pieces = page.replace(b"<", b"\0<").split(b"\0")
    return b"".join(pieces[i] for i in rng.permutation(len(pieces)))


def nested(rng, page):
    names = rng.choice(TAGS, rng.integers(1, 4))
    opening = "".join(f"<{name} a{rng.integers(9)}=%d>" for name in names)
    closing = "".join(f"</{name}>" for name in rng.permutation(names)) * rng.integers(2)
    return "".join((opening + closing).replace("%d", str(i)) for i in range(3000)).encode() + page


def mislabelled(rng, page):
    said, meant = rng.choice(ENCODINGS, 2)
    text = page.decode("utf-8", "replace").replace("utf-8", str(said))
    try:
        return text.encode(str(meant), "replace")
    except LookupError:
        return text.encode("utf-8")


def attributes(rng, page):
    names = " ".join(f"{chr(97 + rng.integers(26))}{i}='{i}" for i in range(2000))
    return b"<div " + names.encode() + b">" + page


MUTATIONS = (cut, stirred, noise, shuffled, nested, mislabelled, attributes)


@pytest.mark.realtime
def test_mutated_pages_are_survived():
    rng = np.random.default_rng(7)
    extract_fields(decode(PAGE))
    longest = 0.0
    for number in range(PAGES):
        page = PAGE
        for mutation in rng.choice(len(MUTATIONS), rng.integers(1, 3)):
            page = MUTATIONS[mutation](rng, page)[:MAX_BYTES] or b"<"
        started = time.process_time()
        fields = extract_fields(decode(page, str(rng.choice(ENCODINGS))))
        longest = max(longest, time.process_time() - started)
        assert isinstance(fields.content, str), number
        assert longest < LONGEST_SECONDS, (number, page[:200])
