"""What a service is told at its start: where it listens, what it takes, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from dualrank.errors import SettingsError
from dualrank.online.events.event_store import WAIT


@dataclass(frozen=True)
class ServiceSettings:
    """Where a service listens, and what it refuses.

    Limits are there so that one client cannot take the memory or the time of all: what is above
    them gets an answer that says so.
    """

    host: Annotated[str, "The address to listen on; without it, this machine alone."] = "127.0.0.1"
    port: Annotated[int, "The port; 0 takes a free one.", {"min": 0, "max": 65_535}] = 8_000
    depth: Annotated[
        int, "How many results a user sees where a request does not say.", {"min": 1}
    ] = 10
    token_file: Annotated[
        Path | None,
        "A file with the secret that every request which changes something must bring.",
    ] = None
    wait: Annotated[
        float, "Seconds that a list waits for its events before it is in the log.", {"min": 0}
    ] = WAIT
    every: Annotated[float, "Seconds between two files of the log.", {"min": 0.1}] = 10.0
    max_bytes: Annotated[int, "The largest body of a request.", {"min": 1}] = 8 << 20
    max_documents: Annotated[int, "The most documents of one query.", {"min": 1}] = 1_000
    max_queries: Annotated[int, "The most queries of one request.", {"min": 1}] = 1_000
    max_events: Annotated[int, "The most events of one request.", {"min": 1}] = 10_000
    max_rate: Annotated[
        float, "The most requests of one client in a second; 0 is no limit.", {"min": 0}
    ] = 1_000.0
    max_waiting: Annotated[
        int, "The most requests that are answered at the same time.", {"min": 1}
    ] = 256
    max_streams: Annotated[int, "The most pages that watch at the same time.", {"min": 1}] = 64
    patience: Annotated[
        float, "Seconds that a client may take to send a request.", {"min": 0.1}
    ] = 10.0
    explore: float = 0.0
    """The share of lists in which the first result is exchanged with another one."""

    def __post_init__(self) -> None:
        if not 0 <= self.explore <= 0.5:
            raise SettingsError(
                f"explore={self.explore:g}: the share of lists with an exchange is 0 to 0.5"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether an address, or the name of a host, is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
