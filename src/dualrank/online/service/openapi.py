"""What the service understands and answers, as an OpenAPI document made of the types it goes by.

The same types check requests (`bodies.py`), so that the document cannot say something else.
`/docs` is a page of our own: nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from typing import Any, Literal

from pydantic import TypeAdapter

from dualrank.online.service.bodies import (
    Events,
    OneEvent,
    Queries,
    Query,
    Ranking,
    Rankings,
    Recorded,
    Rollback,
    Sentence,
    State,
)
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.version import __version__

REFUSALS = {
    400: "Not a request that can be understood",
    401: "No token, or another one",
    403: "The service has no token, which this needs",
    408: "The request took too long to arrive",
    409: "The versions do not allow it",
    413: "The body is too large",
    415: "The body is not application/json",
    421: "The request was sent to another host",
    422: "The body does not say what it should; the sentence says where",
    429: "This client asks too often",
    503: "Too many requests, or nothing can be written; Retry-After says when to come back",
}
_ALWAYS = (400, 421, 429, 503)
_OF_BODIES = (*_ALWAYS, 401, 408, 413, 415, 422)
_KINDS: dict[str, Any] = {
    each.__name__: each
    for each in (Query, Queries, Ranking, Rankings, OneEvent, Events, Recorded, Rollback, Sentence)
} | {"State": State}


@cache
def openapi_document(settings: ServiceSettings) -> dict[str, Any]:
    """The document, with the limits of this service."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dualrank",
            "version": __version__,
            "description": "Ranks documents, and collects what users do with them.",
        },
        "paths": _paths(settings.token_file is not None),
        "components": {
            "schemas": _schemas(settings),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths(with_token: bool) -> dict[str, Any]:
    token: list[dict[str, list[str]]] = [{"token": []}] if with_token else []
    return {
        "/rank": {
            "post": _with_body(
                "Rank candidates",
                "One query, or several at once. Documents have features, or ids that the table of "
                "the service knows.",
                ("Query", "Queries"),
                {200: ("The order, best first", ("Ranking", "Rankings"))},
                token,
            )
        },
        "/events": {
            "post": _with_body(
                "Say what users did",
                "One event, or several at once. They are on disk when the answer comes; the same "
                "event may be sent again.",
                ("OneEvent", "Events"),
                {
                    200: ("What became of them", ("Recorded",)),
                    422: (
                        "The body is wrong, or every event was refused",
                        ("Sentence", "Recorded"),
                    ),
                },
                token,
            )
        },
        "/rollback": {
            "post": _with_body(
                "Take the live version back",
                "Needs a token always.",
                ("Rollback",),
                {200: ("What is live now", ()), **_refused(403, 409)},
                [{"token": []}],
            )
        },
        "/status": _get("The state that the page shows"),
        "/stream": _get("The state, then what changes of it", "text/event-stream"),
        "/metrics": _get("Counters for Prometheus", "text/plain"),
        "/healthz": _get("Whether the process lives", schemas=("State",)),
        "/readyz": _get("Whether requests are answered and events kept", schemas=("State",)),
        "/openapi.json": _get("This document"),
        "/docs": _get("This document as a page", "text/html"),
        "/": _get("A page that follows the service", "text/html"),
    }


def _get(
    summary: str, kind: str = "application/json", schemas: tuple[str, ...] = ()
) -> dict[str, Any]:
    answers = {200: (summary, schemas), **_refused(*_ALWAYS)}
    return {"get": {"summary": summary, "responses": _responses(answers, kind)}}


def _with_body(
    summary: str,
    description: str,
    bodies: tuple[str, ...],
    answers: dict[int, tuple[str, tuple[str, ...]]],
    token: list[dict[str, list[str]]],
) -> dict[str, Any]:
    return {
        "summary": summary,
        "description": description,
        "security": token,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _schema(bodies)}},
        },
        "responses": _responses(_refused(*_OF_BODIES) | answers),
    }


def _refused(*statuses: int) -> dict[int, tuple[str, tuple[str, ...]]]:
    return {status: (REFUSALS[status], ("Sentence",)) for status in statuses}


def _responses(
    answers: dict[int, tuple[str, tuple[str, ...]]], kind: str = "application/json"
) -> dict[str, Any]:
    return {
        str(status): {
            "description": description,
            "content": {
                kind if status == 200 else "application/json": {"schema": _schema(schemas)}
            },
        }
        for status, (description, schemas) in sorted(answers.items())
    }


def _schema(names: tuple[str, ...]) -> dict[str, Any]:
    found = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return {"anyOf": found} if len(found) > 1 else (found or [{}])[0]


def _schemas(settings: ServiceSettings) -> dict[str, Any]:
    mode: Literal["validation"] = "validation"
    _, found = TypeAdapter.json_schemas(
        [(name, mode, TypeAdapter(kind)) for name, kind in _KINDS.items()],
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = found["$defs"]
    for name, field, most in (
        ("Query", "documents", settings.max_documents),
        ("Queries", "queries", settings.max_queries),
        ("Events", "events", settings.max_events),
    ):
        schemas[name]["properties"][field]["maxItems"] = most
    return schemas


def docs_page(settings: ServiceSettings) -> str:
    """The document as a plain page."""
    document = openapi_document(settings)
    parts = []
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(
                f"<p>{escape(about['summary'])}. {escape(about.get('description', ''))}</p>"
            )
            body = about.get("requestBody")
            if body is not None:
                parts.append(
                    f"<p>Takes {_links(body['content']['application/json']['schema'])}.</p>"
                )
            parts.append("<table><tr><th>Status</th><th>Meaning</th><th>Answer</th></tr>")
            for status, answer in about["responses"].items():
                ((kind, content),) = answer["content"].items()
                shown = _links(content["schema"]) or escape(kind)
                said = escape(answer["description"])
                parts.append(f"<tr><td>{status}</td><td>{said}</td><td>{shown}</td></tr>")
            parts.append("</table>")
    parts.append("<h2>Types</h2>")
    for name, schema in document["components"]["schemas"].items():
        text = escape(json.dumps(schema, indent=1))
        parts.append(f'<h3 id="{escape(name)}">{escape(name)}</h3><pre>{text}</pre>')
    return _PAGE.replace("CONTENT", "\n".join(parts)).replace("VERSION", escape(__version__))


def _links(schema: dict[str, Any]) -> str:
    several = schema.get("anyOf", [schema])
    names = [each["$ref"].rpartition("/")[2] for each in several if "$ref" in each]
    return " or ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in names)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>dualrank: requests and answers</title>
<meta name="viewport" content="width=device-width">
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; border-top: 1px solid #8884; padding: .2rem .5rem; vertical-align: top; }
pre { background: #8882; padding: .5rem; overflow: auto; font-size: .85rem; }
h2 { margin-top: 2.5rem; }
</style></head><body>
<h1>dualrank VERSION</h1>
<p>What this service takes and answers. For programs: <a href="openapi.json">openapi.json</a>.
Every refusal is <code>{"error": "…"}</code> with one sentence.</p>
CONTENT
</body></html>
"""
