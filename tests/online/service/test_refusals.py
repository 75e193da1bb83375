"""Bodies that say something else than they should: each with its answer, and nothing is kept."""

import json

import pytest

GOOD = '{"doc_id":"a","features":[1,2]}'


def with_documents(*documents, rest=""):
    return f'{{"query_id":"q","documents":[{",".join(documents)}]{rest}}}'.encode()


BODIES = {
    "nothing": (b"", "the body is no JSON"),
    "half": (b'{"query_id":', "the body is no JSON"),
    "not an object": (b"[]", "the body: expected an object, not []"),
    "a number": (b"7", "the body: expected an object, not 7"),
    "no bytes of UTF-8": (b'{"query_id":"\xff\xfe"}', "the body is no JSON"),
    "half a pair of surrogates": (rb'{"query_id":"\ud800"}', "the body is no JSON"),
    "no documents": (b'{"query_id":"q"}', "documents: it is missing"),
    "an empty list": (with_documents(), "documents: the list is empty; expected one or more"),
    "no id": (with_documents('{"features":[1,2]}'), "documents[0].doc_id: it is missing"),
    "an empty id": (with_documents('{"doc_id":"","features":[1,2]}'), "doc_id: string"),
    "a long id": (
        with_documents(f'{{"doc_id":"{"x" * 300}","features":[1,2]}}'),
        "documents[0].doc_id: string should have at most 256 characters",
    ),
    "a number for an id": (with_documents('{"doc_id":7,"features":[1,2]}'), "valid string, not 7"),
    "a line feed in an id": (
        with_documents(r'{"doc_id":"a\nb","features":[1,2]}'),
        "documents[0].doc_id: expected text without control characters, not 'a\\nb'",
    ),
    "an escape in a query": (rb'{"query_id":"\u001b[31m","documents":[]}', "expected text"),
    "another name": (with_documents(GOOD, rest=',"more":1'), "more: there is no such name here"),
    "a name twice": (
        with_documents('{"doc_id":"a","doc_id":"b","features":[1,2]}'),
        "gives a name twice",
    ),
    "a name twice, with escapes": (
        with_documents(r'{"doc_id":"a","d\u006fc_id":"b","features":[1,2]}'),
        "it names 'doc_id' twice",
    ),
    "a document twice": (with_documents(GOOD, GOOD), "document 'a' of query 'q' is there twice"),
    "too few features": (
        with_documents('{"doc_id":"a","features":[1]}'),
        "document 'a' of query 'q' has 1 features; the model knows 2",
    ),
    "too many features": (
        with_documents(GOOD, '{"doc_id":"b","features":[1,2,3]}'),
        "document 'b' of query 'q' has 3 features; the model knows 2",
    ),
    "no features at all": (with_documents('{"doc_id":"a"}'), "or start it with --features"),
    "features of some": (
        with_documents(GOOD, '{"doc_id":"b"}'),
        "document 'b' of query 'q' has no features, and others have",
    ),
    "text for a feature": (
        with_documents('{"doc_id":"a","features":[1,"2"]}'),
        "documents[0].features[1]: expected a valid number, not '2'",
    ),
    "nan": (with_documents('{"doc_id":"a","features":[1,NaN]}'), "finite number, not nan"),
    "infinity": (with_documents('{"doc_id":"a","features":[1,-Infinity]}'), "number, not -inf"),
    "a number past all": (with_documents('{"doc_id":"a","features":[1,1e999]}'), "finite number"),
    "a number past float32": (
        with_documents('{"doc_id":"a","features":[1,1e39]}'),
        "document 'a' of query 'q': feature 2 is 1e+39, which is too large",
    ),
    "a very long number": (
        with_documents(f'{{"doc_id":"a","features":[1,1{"0" * 6000}]}}'),
        "the body is no JSON",
    ),
    "a missing value": (
        with_documents('{"doc_id":"a","features":[1,null]}'),
        "feature 2 is missing in 1 of 1 documents",
    ),
    "numbers that JSON has not": (with_documents('{"doc_id":"a","features":[1,+2]}'), "no JSON"),
    "zeros before a number": (with_documents('{"doc_id":"a","features":[1,02]}'), "no JSON"),
    "a point without digits": (with_documents('{"doc_id":"a","features":[1.,2]}'), "no JSON"),
    "a comma too many": (with_documents('{"doc_id":"a","features":[1,2,]}'), "no JSON"),
    "more after the end": (with_documents(GOOD) + b" {}", "the body is no JSON"),
    "nested without end": (b"[" * 100_000, "the body is no JSON"),
    "nested features": (with_documents('{"doc_id":"a","features":[[1,2]]}'), "a valid number"),
    "nobody sees anything": (
        with_documents(GOOD, rest=',"displayed":0'),
        "displayed: expected greater than or equal to 1",
    ),
    "one and several": (
        b'{"query_id":"q","queries":[{"query_id":"q","documents":[%s]}]}' % GOOD.encode(),
        "query_id: there is no such name here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BODIES)
def test_a_wrong_query_is_refused_with_a_sentence(asking, what):
    body, sentence = BODIES[what]
    answer = asking.post("/rank", body)
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]
    assert sentence in answer.json()["error"]
    assert len(answer.content) < 1_000
    assert asking.transport.shown == []


def test_spaces_between_values_change_nothing(asking):
    body = (
        b' { "query_id" : "q" ,\n"documents"\t: [ { "doc_id": "a" , "features" : [ 1 , 2 ] } ] } '
    )
    assert asking.post("/rank", body).status_code == 200


def test_limits_are_said(serving, query):
    asking = serving(max_documents=2, max_queries=2, max_events=2)
    answer = asking.post("/rank", query(1, 2, 3))
    assert answer.status_code == 422
    assert "has 3 documents; this service takes at most 2" in answer.json()["error"]
    answer = asking.post("/rank", {"queries": [query(1)] * 3})
    assert "3 queries; this service takes at most 2 at once" in answer.json()["error"]
    event = {"impression_id": "i", "doc_id": "d"}
    answer = asking.post("/events", {"events": [event] * 3})
    assert "3 events; this service takes at most 2 at once" in answer.json()["error"]
    assert asking.transport.shown == []


def test_a_wrong_query_of_several_refuses_all(asking, query):
    wrong = {"query_id": "b", "documents": [{"doc_id": "x", "features": [1]}]}
    answer = asking.post("/rank", {"queries": [query(1, 2), wrong]})
    assert answer.status_code == 422
    assert "document 'x' of query 'b'" in answer.json()["error"]
    assert asking.transport.shown == []


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ({"doc_id": "d0"}, "impression_id: it is missing"),
        ({"impression_id": "i", "doc_id": "d0", "amount": -1}, "amount: expected greater than"),
        ({"impression_id": "i", "doc_id": "d0", "amount": 1e300}, "amount: expected less than"),
        ({"impression_id": "i", "doc_id": "d0", "amount": "1"}, "amount: expected a valid number"),
        ({"impression_id": "i", "doc_id": "d0", "event_id": "a\x00"}, "event_id: expected text"),
        ({"impression_id": "i", "doc_id": "d0", "event_id": ""}, "event_id: string should have"),
        ({"events": []}, "events: the list is empty; expected one or more"),
        ({"events": [{}]}, "events[0].impression_id: it is missing"),
        ([], "the body: expected an object"),
    ],
)
def test_a_wrong_event_is_refused_with_a_sentence(asking, event, sentence):
    answer = asking.post("/events", json.dumps(event).encode())
    assert answer.status_code == 422
    assert sentence in answer.json()["error"]


MARKUP = "<script>alert(1)</script>\u202e\"'&{{7*7}}../../etc/passwd"


def test_ids_with_markup_are_text(asking):
    body = {"query_id": MARKUP, "documents": [{"doc_id": MARKUP, "features": [1, 2]}]}
    found = asking.post("/rank", body).json()
    assert found["results"][0]["doc_id"] == MARKUP
    event = {"impression_id": found["impression_id"], "doc_id": MARKUP}
    assert asking.post("/events", event).json()["new"] == 1
    answer = asking.post("/rank", {"query_id": MARKUP, "documents": [{"doc_id": MARKUP}]})
    assert answer.headers["content-type"] == "application/json"
    for path in ("/status", "/metrics", "/docs", "/"):
        assert "<script>alert" not in asking.get(path).text


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/rank/",
        "/page/../../versions.py",
        "/../service.py",
        "/..%2f..%2fservice.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page.js/",
        "/index.html%00.js",
        "//etc/passwd",
        "/<script>",
    ],
)
def test_no_path_leads_out(asking, path):
    answer = asking.get(path)
    assert answer.status_code == 404
    assert "there is nothing at" in answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/rank", "POST"), ("POST", "/status", "GET"), ("DELETE", "/events", "POST"),
     ("PUT", "/rollback", "POST"), ("OPTIONS", "/rank", "POST"), ("POST", "/", "GET")],
)  # fmt: skip
def test_another_method_is_told_which_ones_there_are(asking, method, path, allowed):
    answer = asking.ask(method, path)
    assert answer.status_code == 405
    assert allowed in answer.headers["allow"]
    assert "is not asked by" in answer.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "json"])
def test_what_a_foreign_page_could_send_is_refused(asking, kind):
    """Forms and plain text are what browsers send to other hosts without asking them first."""
    answer = asking.ask("POST", "/events", content=b"{}", headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]


def test_an_error_of_ours_is_a_sentence_and_logged(asking, query, monkeypatch, caplog):
    monkeypatch.setattr(asking.service.ids, "new", lambda: 1 / 0)
    answer = asking.post("/rank", query(1))
    assert answer.status_code == 500
    assert answer.json() == {"error": "something went wrong here; the log of the service says"}
    assert "ZeroDivisionError" in caplog.text
    assert "dualrank_errors_total 1.0" in asking.get("/metrics").text
