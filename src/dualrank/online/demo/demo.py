"""`serve --demo`: a whole service with simulated users, in one folder.

    DEMO/models/             versions of the model; the first is also the frozen one
    DEMO/events/             what users did
    DEMO/features.parquet    what the service knows of documents
    DEMO/learner.log         what the learner says
    DEMO/token               the secret that takes a version back
    DEMO/users.json …        habits of the users (`demo_habits.py`)

Server, learner and users are three processes that know of each other what they would know anywhere.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dualrank.errors import SettingsError
from dualrank.online.demo.demo_habits import Account, Habits, account_in, wish
from dualrank.online.demo.demo_start import SESSIONS, first_model, start_of
from dualrank.online.demo.demo_users import BEFORE, CHANGE
from dualrank.online.demo.demo_world import DEPTH, DemoWorld
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.online.service.serving import Started, serve
from dualrank.online.versions import Versions
from dualrank.sentences import counted

WAIT, EVERY = 1.0, 4.0
"""Simulated users click at once: their lists need not wait for them."""
PATIENCE = 5.0


@dataclass(frozen=True)
class DemoStarted:
    """What a demo says of itself when one can watch it."""

    url: str
    folder: Path
    token: str


class DemoDesk:
    """What a page sees of simulated users, and may ask of them."""

    def __init__(self, folder: Path, start: list[float]) -> None:
        self._folder = folder
        first = Account(DEPTH, start)
        first.behave(Habits(eta=BEFORE))
        first.write(folder)

    def status(self) -> dict[str, Any]:
        """Their habits, the truth about examination, and how good the lists are that they see."""
        return account_in(self._folder)

    def change(self, values: dict[str, Any]) -> dict[str, Any]:
        """Ask for other habits."""
        wish(self._folder, values)
        return values


def run_demo(
    folder: Path,
    settings: ServiceSettings | None = None,
    *,
    seed: int = 0,
    change: float = CHANGE,
    ready: Callable[[DemoStarted], None] = lambda started: None,
) -> None:
    """Serve a generated world to simulated users until the process is asked to stop.

    After `change` seconds users look less far down; 0: they stay as they are, unless asked.
    """
    models, token = folder / "models", folder / "token"
    if Versions.is_one(models):
        raise SettingsError(f"{folder}: there was a demo already; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    world = DemoWorld.of(seed)
    first = first_model(world, Habits(eta=BEFORE).user)
    start = start_of(world, first)
    start.write(folder)
    Versions.create(models, first, f"learned from {counted(SESSIONS, 'sessions')} and no more")
    world.write_features(folder / "features.parquet")
    secret = secrets.token_hex(16)
    with open(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secret)
    settings = settings or ServiceSettings()
    settings = replace(settings, wait=WAIT, every=EVERY, depth=DEPTH, token_file=token)
    with _users(folder, seed, change) as begin:

        def answers(started: Started) -> None:
            begin(started.url)
            ready(DemoStarted(started.url, folder, secret))

        serve(
            models,
            folder / "events",
            settings,
            learn=True,
            features=folder / "features.parquet",
            learner_output=folder / "learner.log",
            demo=lambda service: DemoDesk(folder, start.curve),
            seed=seed,
            ready=answers,
        )


@contextmanager
def _users(folder: Path, seed: int, change: float) -> Iterator[Callable[[str], None]]:
    """A function that lets users search at an address; they leave at the end."""
    options = ["--seed", str(seed), "--change", str(change)]
    words = [sys.executable, "-m", "dualrank.online.demo.demo_users", str(folder), *options]
    users = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)
    assert users.stdin is not None
    tell = users.stdin

    def begin(address: str) -> None:
        tell.write(f"{address}\n")
        tell.flush()

    try:
        yield begin
    finally:
        users.terminate()
        try:
            users.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            users.kill()
            users.wait()
        with suppress(OSError):
            tell.close()
