"""What is read past Python is what the slow way reads, or is left to it."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.errors import DataError
from dualrank.online.service.bodies import Queries, Query, read_one_or_several
from dualrank.online.service.quick_queries import quick_queries
from dualrank.online.service.ranking_answer import features_of


def body_of(*texts):
    rows = ",".join(f'{{"doc_id":"d{i}","features":[{text}]}}' for i, text in enumerate(texts))
    return f'{{"query_id":"q","documents":[{rows}]}}'.encode()


def slowly(body, inputs):
    found = read_one_or_several(Query, Queries, "queries", body)
    return features_of("q", found["documents"], inputs)


finite = st.floats(width=64, allow_nan=False, allow_infinity=False)
written = st.one_of(
    finite.map(repr),
    finite.map(lambda v: f"{v:.6g}"),
    finite.map(lambda v: f"{v:E}"),
    st.integers(-(10**25), 10**25).map(str),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.text("0123456789.eE+-", min_size=1, max_size=12),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(written, min_size=1, max_size=4))
def test_numbers_are_those_of_the_slow_way(texts):
    body = body_of(*texts)
    found = quick_queries(body, 1)
    if found is None:
        return
    (matrix,) = found[1]
    assert matrix.tobytes() == slowly(body, 1).tobytes()


def test_ordinary_numbers_are_read_quickly():
    values = np.random.default_rng(0).normal(size=(20, 7)).astype(np.float32)
    documents = [{"doc_id": str(i), "features": row} for i, row in enumerate(values.tolist())]
    for indent in (None, 1):
        body = json.dumps(
            {"query_id": "é", "documents": documents}, indent=indent, ensure_ascii=False
        )
        asked, (matrix,) = quick_queries(body.encode(), 7)
        assert matrix.tolist() == values.tolist()
        assert asked["query_id"] == "é"


def test_several_queries_have_a_matrix_each():
    one = '{"query_id":"%s","documents":[{"doc_id":"a","features":[%d,2]}]}'
    table = '{"query_id":"t","documents":[{"doc_id":"a"}]}'
    body = f'{{"queries":[{one % ("a", 1)},{table},{one % ("b", 3)}]}}'
    asked, matrices = quick_queries(body.encode(), 2)
    assert len(asked["queries"]) == 3
    assert [None if m is None else m.tolist() for m in matrices] == [[[1, 2]], None, [[3, 2]]]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[", b"[1", b"[1,", b"[1]", b'"', b'"[1', b"[-", b"[1e", b"[1.", b"[0", b"\x00",
     b'{"query_id":"a\\u0062","documents":[{"doc_id":"a","features":[1,2]}]}',
     body_of("1,2", "1"), body_of("1,null"), body_of("1,NaN"), body_of("1,1e39"), body_of("[1,2]"),
     body_of("1,2") + b"[1]", b"[1,2]" + body_of("1,2"), body_of("1 2"), body_of("1,2,"),
     b'{"query_id":[1,2],"documents":[{"doc_id":"a","features":[1,2]}]}',
     b'{"query_id":"q","documents":[{"doc_id":"a","features":[1,2],"features":[3,4]}]}',
     b'{"query_id":"q","documents":[{"doc_id":"a","features":[1,2]},{"doc_id":"b"}]}'],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_slow_way(body):
    assert quick_queries(body, 2) is None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_broken_bodies_are_accepted_by_neither_or_alike(data):
    whole = bytearray(body_of("1.5,-2", "3e1,0.25"))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.sampled_from(b'0123456789.,-+eE[]{}":\\ \n\x00\xff'))
    found = quick_queries(bytes(whole), 2)
    if found is None:
        return
    try:
        assert found[1][0].tobytes() == slowly(bytes(whole), 2).tobytes()
    except (DataError, struct.error) as error:  # pragma: no cover - would be a difference
        raise AssertionError(f"the slow way says: {error}") from error
