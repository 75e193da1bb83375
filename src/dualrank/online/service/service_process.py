"""A service as a process: the socket, the server, and how both end.

Asked to stop, the server takes no new connections, answers what is under way, and ends the streams
of pages. What it was given is closed by whoever opened it (`serving.py`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dualrank.errors import SettingsError
from dualrank.extras import require
from dualrank.online.service.learner_process import LearnerProcess
from dualrank.online.service.service import Service
from dualrank.online.service.service_app import make_app
from dualrank.online.service.service_settings import ServiceSettings

LONGEST_ANSWER = 4
"""Seconds for answers that are under way when the service is asked to stop."""
IDLE = 30
"""Seconds for which a connection without a request is kept."""
LONGEST_HEAD = 1 << 16
"""Bytes of the head of a request."""

log = logging.getLogger(__name__)


def listen(settings: ServiceSettings) -> socket.socket:
    """The socket of a service; a SettingsError where it cannot be had."""
    where = f"{settings.host}:{settings.port}"
    try:
        (family, *_, address), *_ = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return socket.create_server(address[:2], family=family, backlog=1_024)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{where}: cannot listen there: {reason}") from error


def run(
    service: Service,
    sock: socket.socket,
    learner: LearnerProcess | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until a signal says to stop, and what is under way is answered."""
    import torch

    torch.set_num_threads(1)  # answers are many and small; the other core is the learner's
    settings = service.settings
    if not settings.is_local and not service.token.is_set:
        log.warning(
            "%s can be reached from elsewhere, and there is no token: whoever reaches it can ask, "
            "and send events; give --token-file",
            settings.host,
        )
    _server(service, learner, ready).run(sockets=[sock])
    log.info("stopped")


def _server(service: Service, learner: LearnerProcess | None, ready: Callable[[], None]) -> Any:
    uvicorn = require("serve", "uvicorn")
    settings = service.settings
    config = uvicorn.Config(
        make_app(service),
        http=_protocol(settings.patience),
        loop="auto" if sys.platform == "win32" else "uvloop",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # whoever sends such a header could be anybody
        server_header=False,
        limit_concurrency=4 * settings.max_waiting + settings.max_streams,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=LONGEST_ANSWER,
    )

    base: Any = uvicorn.Server

    class Server(base):
        """Tells the rest when it begins and when it is to end."""

        async def startup(self, sockets: Any = None) -> None:
            # The event that ends streams belongs to the loop that waits for it.
            service.stopping = asyncio.Event()
            await super().startup(sockets=sockets)
            ready()

        async def shutdown(self, sockets: Any = None) -> None:
            log.info("stopping")
            service.stopping.set()
            if learner is not None:
                learner.ask_to_stop()
            await super().shutdown(sockets=sockets)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            # Unlike the server's own, a signal that was obeyed is not raised again at the end.
            signals = (signal.SIGINT, signal.SIGTERM)
            before = {each: signal.signal(each, self.handle_exit) for each in signals}
            try:
                yield
            finally:
                for each, handler in before.items():
                    signal.signal(each, handler)

    return Server(config)


def _protocol(patience: float) -> type[Any]:
    """The server's protocol, for clients that may be slow, or never say what they want."""
    base: type[Any] = require("serve", "uvicorn.protocols.http.httptools_impl").HttpToolsProtocol

    class Patient(base):
        """Closes connections whose request does not begin, or whose head does not end."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._head = 0
            self._late: Any = self.loop.call_later(patience, transport.close)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._late is None:
                self._head = 0
                self._late = self.loop.call_later(patience, self.transport.close)

        def on_headers_complete(self) -> None:
            self._in_time()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._late is not None:
                self._head += len(data)
                if self._head > LONGEST_HEAD and not self.transport.is_closing():
                    self.send_400_response("The head of the request is too large.")

        def connection_lost(self, error: Exception | None) -> None:
            self._in_time()
            super().connection_lost(error)

        def _in_time(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Patient
