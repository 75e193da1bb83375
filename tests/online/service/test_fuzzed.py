"""Requests made from the OpenAPI document, and broken in every way that a fuzzer knows."""

import hypothesis
import pytest

schemathesis = pytest.importorskip("schemathesis")

SETTINGS = hypothesis.settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
ROUTES = [
    *(("POST", path) for path in ("/rank", "/events", "/rollback")),
    *(("GET", path) for path in ("/status", "/stream", "/metrics", "/healthz", "/readyz")),
    *(("GET", path) for path in ("/openapi.json", "/docs", "/")),
]


@pytest.fixture
def described(serving, token, monkeypatch):
    asking = serving(token=token, max_rate=0)
    # A stream that goes on for ever would be waited for.
    asking.service.stopping.set()
    monkeypatch.setattr(asking.service, "why_not_ready", lambda: None)
    return schemathesis.openapi.from_asgi("/openapi.json", asking.app)


def test_every_route_of_the_document_is_tried(described):
    paths = described.raw_schema["paths"]
    assert {(m.upper(), path) for path in paths for m in paths[path]} == set(ROUTES)


POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    # Of a request without body and parameters nothing can be wrong.
    [(*route, mode) for route in ROUTES for mode in (POSITIVE, NEGATIVE)
     if route[0] == "POST" or mode is POSITIVE],
)  # fmt: skip
def test_every_request_has_an_answer_of_the_document(described, bearer, method, path, mode):
    cases = described[path][method].as_strategy(generation_mode=mode)

    @hypothesis.given(cases)
    @SETTINGS
    def ask(case):
        case.call_and_validate(
            headers=bearer,
            # Whether documents have the features of the model, or an impression was displayed, is
            # nothing that a schema could say.
            excluded_checks=[schemathesis.checks.positive_data_acceptance],
        )

    ask()
