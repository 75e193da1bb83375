"""The service on HTTP: routes, and what stands before them.

Starlette, because a route gets the bytes of a request as they came: they go straight into
pydantic's parser, and nothing is read twice. FastAPI stands on Starlette and would parse the body
into Python first.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from dualrank.errors import DataError, StorageError
from dualrank.extras import require
from dualrank.online.service.openapi import docs_page, openapi_document
from dualrank.online.service.page_files import HEADERS, page_files
from dualrank.online.service.protection import RateLimit, RefusedError, is_own_host, receive_body
from dualrank.sentences import shortened
from dualrank.storage import parse_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from dualrank.online.service.service import Service

RETRY_AFTER = 2
"""Seconds after which to come back where nothing can be written, or too many are waiting."""
JSON = "application/json"

log = logging.getLogger(__name__)
Scope = dict[str, Any]
Send = Callable[[Any], Awaitable[None]]


def make_app(service: Service) -> Guard:
    """The application, for any server that speaks ASGI."""
    starlette = require("serve", "starlette.applications")
    routing = require("serve", "starlette.routing")
    exceptions = require("serve", "starlette.exceptions")
    routes = _Routes(service)
    table: list[Any] = [
        routing.Route(path, function, methods=[method])
        for method, path, function in (
            ("POST", "/rank", routes.rank),
            ("POST", "/events", routes.events),
            ("POST", "/rollback", routes.rollback),
            ("GET", "/status", routes.status),
            ("GET", "/stream", routes.stream),
            ("GET", "/metrics", routes.metrics),
            ("GET", "/healthz", routes.healthz),
            ("GET", "/readyz", routes.readyz),
            ("GET", "/openapi.json", routes.openapi),
            ("GET", "/docs", routes.docs),
            *(("GET", path, routes.page) for path in page_files()),
        )
    ]
    if service.demo is not None:
        table.append(routing.Route("/demo", routes.demo, methods=["POST"]))
    app = starlette.Starlette(
        routes=table,
        exception_handlers={
            RefusedError: routes.refused,
            DataError: routes.wrong,
            StorageError: routes.not_kept,
            exceptions.HTTPException: routes.no_route,
            Exception: routes.failed,
        },
    )
    app.router.redirect_slashes = False
    return Guard(app, service, frozenset(route.path for route in table))


class Guard:
    """Stands before the routes: who may ask now, and how long it took to answer."""

    def __init__(self, app: Any, service: Service, paths: frozenset[str]) -> None:
        self._app, self._service, self._paths = app, service, paths
        self._rate = RateLimit(service.settings.max_rate)
        self._only_local = service.settings.is_local and not service.token.is_set
        self._waiting = 0
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        start, path, status = time.perf_counter(), scope["path"], 500
        is_stream = path == "/stream"

        async def note(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._require_admitted(scope, is_stream)
        except RefusedError as refused:
            await _refusal(refused)(scope, receive, note)
        else:
            self._count(is_stream, 1)
            try:
                await self._app(scope, receive, note)
            except Exception:
                # It was answered, and is logged here; the server has nothing to add.
                log.exception("an answer failed", extra={"route": self._route(path)})
                self._service.metrics.errors.inc()
            finally:
                self._count(is_stream, -1)
        seconds = time.perf_counter() - start
        self._service.metrics.answered(self._route(path), status, seconds)

    def _route(self, path: str) -> str:
        return path if path in self._paths else "other"

    def _count(self, is_stream: bool, one: int) -> None:
        if is_stream:
            self._streams += one
        else:
            self._waiting += one

    def _require_admitted(self, scope: Scope, is_stream: bool) -> None:
        settings = self._service.settings
        client = scope.get("client")
        wait = self._rate.wait_of(client[0] if client else "")
        if wait:
            raise RefusedError(
                429,
                f"this client asked more than {settings.max_rate:g} times a second",
                {"Retry-After": str(math.ceil(wait))},
            )
        if is_stream and self._streams >= settings.max_streams:
            raise _busy(f"{self._streams} pages are watching already")
        if not is_stream and self._waiting >= settings.max_waiting:
            raise _busy(f"{self._waiting} requests are being answered already")
        if self._only_local:
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) > 1 or not all(map(is_own_host, hosts)):
                raise RefusedError(
                    421,
                    "the request was sent to another host: without a token only 127.0.0.1 and "
                    "localhost are answered",
                )


class _Routes:
    """A function for every path."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._responses = require("serve", "starlette.responses")
        self._openapi = to_json(openapi_document(service.settings))
        self._docs = docs_page(service.settings).encode()

    async def rank(self, request: Request) -> Response:
        """POST /rank."""
        return self._json(await self._service.rank(await self._body(request)))

    async def events(self, request: Request) -> Response:
        """POST /events."""
        found = await self._service.record(await self._body(request))
        taken = found["new"] + found["again"] + found["late"]
        return self._json(to_json(found), 200 if taken else 422)

    async def rollback(self, request: Request) -> Response:
        """POST /rollback."""
        body = await self._body(request, always=True)
        return self._json(to_json(await self._service.roll_back(body)))

    async def demo(self, request: Request) -> Response:
        """POST /demo, which changes simulated users alone: a page of ours needs no token."""
        self._require_own_page(request)
        body = await self._body(request, token=False)
        assert self._service.demo is not None
        try:
            values = parse_json(body)
        except ValueError as error:
            raise DataError(f"the body is no JSON: {error}") from None
        return self._json(to_json(self._service.demo.change(values)))

    async def status(self, request: Request) -> Response:
        """GET /status."""
        return self._json(await self._service.board.whole(), headers={"Cache-Control": "no-store"})

    async def stream(self, request: Request) -> Response:
        """GET /stream."""
        events = self._service.board.stream(self._service.stopping)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return self._responses.StreamingResponse(
            events, media_type="text/event-stream", headers=headers
        )

    async def metrics(self, request: Request) -> Response:
        """GET /metrics."""
        metrics = self._service.metrics
        headers = {"Content-Type": metrics.content_type, "Cache-Control": "no-store"}
        return self._responses.Response(metrics.text(), headers=headers)

    async def healthz(self, request: Request) -> Response:
        """GET /healthz."""
        return self._json(b'{"status":"ok"}')

    async def readyz(self, request: Request) -> Response:
        """GET /readyz."""
        why = self._service.why_not_ready()
        if why is not None:
            raise _busy(why)
        return self._json(b'{"status":"ok"}')

    async def openapi(self, request: Request) -> Response:
        """GET /openapi.json."""
        return self._json(self._openapi)

    async def docs(self, request: Request) -> Response:
        """GET /docs."""
        return self._responses.Response(self._docs, media_type="text/html", headers=HEADERS)

    async def page(self, request: Request) -> Response:
        """GET / and the files of the page."""
        found = page_files()[request.url.path]
        return self._responses.Response(
            found.content, headers={**HEADERS, "Content-Type": found.kind}
        )

    async def refused(self, request: Request, error: Exception) -> Response:
        """Where a check says no."""
        assert isinstance(error, RefusedError)
        return _refusal(error)

    async def wrong(self, request: Request, error: Exception) -> Response:
        """Where a body does not say what it should."""
        return _refusal(RefusedError(422, str(error)))

    async def not_kept(self, request: Request, error: Exception) -> Response:
        """Where nothing can be written."""
        return _refusal(_busy(str(error)))

    async def no_route(self, request: Request, error: Any) -> Response:
        """Where there is no such path, or not by this method."""
        path = shortened(request.url.path)
        said = {
            404: f"there is nothing at {path}; see /docs",
            405: f"{path} is not asked by {request.method[:20]}",
        }
        sentence = said.get(error.status_code, str(error.detail))
        return _refusal(RefusedError(error.status_code, sentence, dict(error.headers or {})))

    async def failed(self, request: Request, error: Exception) -> Response:
        """Where something went wrong that nobody thought of; the log has it."""
        return _refusal(RefusedError(500, "something went wrong here; the log of the service says"))

    def _require_own_page(self, request: Request) -> None:
        """Refuse what a page of another host sends, or one that took this host's name."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        local = self._service.settings.is_local
        if (local and not is_own_host(host.encode("latin-1"))) or (
            origin is not None and origin.partition("://")[2] != host
        ):
            raise RefusedError(403, "only a page of this service may ask for that")

    async def _body(self, request: Request, *, always: bool = False, token: bool = True) -> bytes:
        """The bytes of a request that may be made, and says that it is JSON."""
        headers, limits = request.headers, self._service.settings
        given = headers.get("authorization", "")
        if token:
            self._service.token.require(given.encode("latin-1"), always=always)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            found = f"not {shortened(kind)}" if kind else "and no other"
            raise RefusedError(415, f"the body is to be {JSON}, {found}")
        declared = headers.get("content-length")
        return await receive_body(
            request.receive,
            None if declared is None else declared.encode("latin-1"),
            limits.max_bytes,
            limits.patience,
        )

    def _json(
        self, content: bytes, status: int = 200, headers: dict[str, str] | None = None
    ) -> Response:
        return self._responses.Response(content, status, headers, media_type=JSON)


def _busy(sentence: str) -> RefusedError:
    return RefusedError(503, sentence, {"Retry-After": str(RETRY_AFTER)})


def _refusal(refused: RefusedError) -> Any:
    response = require("serve", "starlette.responses").Response
    content = to_json({"error": refused.sentence})
    return response(content, refused.status, refused.headers, media_type=JSON)
