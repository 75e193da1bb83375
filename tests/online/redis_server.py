"""A Redis of our own: on a free port, in a temporary folder, started and killed as tests like."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from ..waiting import wait_until

SERVER = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed (apt-get)")


class RedisServer:
    """A server whose data outlive it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.folder = folder
        self.settings = {
            "bind": "127.0.0.1",
            "appendonly": "yes",
            "appendfsync": "always",
            **settings,
        }
        self.process: subprocess.Popen | None = None

    def start(self) -> RedisServer:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = [part for key, value in self.settings.items() for part in (f"--{key}", value)]
        self.command = [
            SERVER, "--port", str(self.port), "--dir", str(self.folder), "--save", "", *settings
        ]  # fmt: skip
        wait_until(self._answers, lambda: "redis-server does not start")
        return self

    def _answers(self) -> bool:
        # A connection of somebody else may have the port for a moment: then Redis ends at once.
        if self.process is None or self.process.poll() is not None:
            nowhere = subprocess.DEVNULL
            self.process = subprocess.Popen(self.command, stdout=nowhere, stderr=nowhere)
        try:
            with socket.create_connection(("127.0.0.1", self.port)) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> RedisServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
