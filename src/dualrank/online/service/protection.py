"""Who may ask, how often, and how much: the checks that come before a request is understood.

One rule: where there is a token, every request that changes something (POST) brings it; what takes
a version back needs one always. Without a token only pages and programs of this machine are
answered: a name of another host in the request means that a page of that host sent the browser.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from time import monotonic
from typing import Any

from dualrank.errors import SettingsError
from dualrank.online.service.service_settings import is_loopback
from dualrank.storage import read_file

SHORTEST_TOKEN, LONGEST_TOKEN = 16, 1_000
MOST_CLIENTS = 10_000
"""So many clients are remembered; of more, those that asked longest ago are forgotten."""

Receive = Callable[[], Awaitable[Any]]


@dataclass
class RefusedError(Exception):
    """A request that gets no answer but this: a status, a sentence, and headers to go with it."""

    status: int
    sentence: str
    headers: dict[str, str] = field(default_factory=dict)


def read_token(path: Path) -> str:
    """The token of a file: its only word."""
    try:
        text = read_file(path, LONGEST_TOKEN).decode("ascii").strip()
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: a token is plain ASCII text") from error
    if len(text) < SHORTEST_TOKEN or not re.fullmatch(r"[!-~]+", text):
        raise SettingsError(
            f"{path}: a token is one word of at least {SHORTEST_TOKEN} signs, such as "
            "`openssl rand -hex 32` prints"
        )
    if os.name == "posix" and path.stat().st_mode & 0o007:
        raise SettingsError(f"{path}: everybody can read this token; chmod 600 {path.name}")
    return text


class Token:
    """The secret of those who may change something; compared in a time that tells nothing."""

    def __init__(self, text: str | None) -> None:
        self._expected = None if text is None else b"Bearer " + text.encode()

    @property
    def is_set(self) -> bool:
        """Whether there is one at all."""
        return self._expected is not None

    def require(self, given: bytes, *, always: bool = False) -> None:
        """Refuse a request that brings another token than this; `always`, if there is none."""
        if self._expected is None:
            if always:
                raise RefusedError(
                    403,
                    "this needs a token, and the service was started without one: start it with "
                    "--token-file",
                )
            return
        if not hmac.compare_digest(given, self._expected):
            what = "another token than ours" if given else "no token"
            raise RefusedError(
                401,
                f"the request brings {what}: send the header Authorization: Bearer TOKEN",
                {"WWW-Authenticate": 'Bearer realm="dualrank"'},
            )


class RateLimit:
    """A token bucket for each client: a second's worth at once, and then so many a second.

    >>> limit = RateLimit(2.0, clock=lambda: 0.0)
    >>> [limit.wait_of("10.0.0.1") for _ in range(3)], limit.wait_of("10.0.0.2")
    ([0.0, 0.0, 0.5], 0.0)
    """

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self.rate, self.burst = rate, max(rate, 1.0)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_of(self, address: str) -> float:
        """Seconds until this client may ask; 0 where it may, which counts."""
        if not self.rate:
            return 0.0
        now, client = self._clock(), client_of(address)
        left, before = self._buckets.get(client, (self.burst, now))
        left = min(self.burst, left + (now - before) * self.rate)
        wait = 0.0 if left >= 1 else (1 - left) / self.rate
        self._buckets[client] = (left if wait else left - 1, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return wait


def client_of(address: str) -> str:
    """Whom an address belongs to: of IPv6, a whole network of 64 bits is given to one.

    >>> client_of("192.0.2.7"), client_of("2001:db8:1:2:3:4:5:6")
    ('192.0.2.7', '2001:db8:1:2::')
    """
    if ":" not in address:
        return address
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(IPv6Address(int(found) >> 64 << 64)) if found.version == 6 else address


def is_own_host(header: bytes) -> bool:
    """Whether a request was sent to a name of this machine.

    >>> is_own_host(b"127.0.0.1:8000"), is_own_host(b"[::1]"), is_own_host(b"evil.example:8000")
    (True, True, False)
    """
    text = header.decode("latin-1")
    name = text[: text.find("]") + 1] if text.startswith("[") else text.partition(":")[0]
    return is_loopback(name)


async def receive_body(
    receive: Receive, declared: bytes | None, most: int, patience: float
) -> bytes:
    """The bytes of a request: at most so many, within so many seconds."""
    if declared is not None and declared.isdigit() and int(declared[:20]) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, "the client went away")
                part = message.get("body", b"")
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise RefusedError(
            408,
            f"the request took longer than {patience:g} seconds to arrive",
            {"Connection": "close"},
        ) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> RefusedError:
    # What is left of the body is not read: the connection cannot be used again.
    return RefusedError(
        413, f"the body is larger than the {most:,} bytes that are taken", {"Connection": "close"}
    )
