"""Simulated users of a running service: they search, look down the list, click, and change.

They are clients like any other, in a process of their own (`python -m
dualrank.online.demo.demo_users`), and know of the service its address alone. Every document is
clicked as `PositionBasedUser` says.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from dualrank.online.demo.demo_habits import WISHES, Account, Habits, Start
from dualrank.online.demo.demo_world import DEPTH, DemoWorld
from dualrank.storage import read_json

TICK = 0.25
PEOPLE = 2_000
PATIENCE = 30.0
"""Seconds without an answer after which users stay away."""
BEFORE, AFTER = 0.5, 1.5
CHANGE = 75.0
"""Seconds after the first search until users change their habits, unless somebody was faster."""


class SearchClient:
    """Speaks with the service over one connection, which is made again when it breaks."""

    def __init__(self, address: str, token: str) -> None:
        where = urlsplit(address)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        self._connection = HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)

    def post(self, path: str, body: bytes) -> Any:
        """The answer; an OSError where there is none after a while."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._connection.request("POST", path, body, self._headers)
                response = self._connection.getresponse()
                answer = response.read()
                if response.status == 200:
                    return json.loads(answer)
                said = f"{path}: {response.status}: {answer[:300]!r}"
                if response.status not in (429, 503):
                    raise RuntimeError(said)
            except (OSError, HTTPException) as error:
                self._connection.close()
                said = f"{path}: {error}"
            if time.monotonic() > end:
                raise OSError(said)
            time.sleep(0.2)


class Crowd:
    """Users in front of one world: what they ask, what they click, what they were shown."""

    def __init__(self, world: DemoWorld, frozen: Sequence[float], seed: int = 0) -> None:
        self._world, self._data = world, world.dataset
        self._rng = np.random.default_rng([seed, 0x_C20D])
        ids = self._data.ids_of_documents()
        self._row = {str(name): row for row, name in enumerate(ids)}
        self._question = [self._asked(query, ids) for query in range(len(self._data))]
        self.frozen = np.asarray(frozen)
        # The first version is the frozen one: what a query was shown last is known from the start.
        self.shown = self.frozen.copy()

    def _asked(self, query: int, ids: NDArray[np.str_]) -> str:
        start, end = self._data.offsets[query : query + 2]
        documents = [{"doc_id": str(name)} for name in ids[start:end]]
        return json.dumps({"query_id": str(self._data.query_ids[query]), "documents": documents})

    def search(self, client: SearchClient, habits: Habits, sessions: int) -> NDArray[np.float64]:
        """So many users search at once, and click what they like; nDCG@10 of every list."""
        queries = self._rng.integers(len(self._data), size=sessions)
        people = self._rng.integers(PEOPLE, size=sessions)
        asked = ",".join(
            f'{self._question[query][:-1]},"displayed":{DEPTH},"client":"user {who}"}}'
            for query, who in zip(queries, people, strict=True)
        )
        answer = client.post("/rank", f'{{"queries":[{asked}]}}'.encode())
        documents = np.full((sessions, DEPTH), -1)
        for i, ranking in enumerate(answer["rankings"]):
            found = [self._row[each["doc_id"]] for each in ranking["results"][:DEPTH]]
            documents[i, : len(found)] = found
        quality = self._world.quality_of(documents, queries)
        self.shown[queries] = quality
        mask = documents >= 0
        grades = np.where(mask, self._data.require_grades()[documents], 0.0)
        chances = habits.user.click_probabilities(grades, mask, self._data.max_grade)
        events = [
            {
                "impression_id": answer["rankings"][row]["impression_id"],
                "doc_id": answer["rankings"][row]["results"][column]["doc_id"],
            }
            for row, column in np.argwhere(self._rng.random(chances.shape) < chances).tolist()
        ]
        if events:
            client.post("/events", json.dumps({"events": events}).encode())
        return quality


class Users:
    """The crowd over time: as many searches as wished, and a change that nobody announces."""

    def __init__(self, crowd: Crowd, account: Account, folder: Path, change: float) -> None:
        self._crowd = crowd
        self._account = account
        self._folder = folder
        self._change = change
        self._heard: dict[str, float] = {}

    def live(self, client: SearchClient) -> None:
        """Search until whoever started this has gone, or the service has."""
        parent, begun = os.getppid(), time.time()
        self._account.behave(Habits(eta=BEFORE))
        if self._change > 0:
            self._account.next_change = {"time": begun + self._change, "eta": AFTER}
        due, told = begun, 0.0
        while os.getppid() == parent:
            self._decide()
            if time.time() - told > 1:
                told = time.time()
                self._account.see(self._crowd.shown.mean(), self._crowd.frozen.mean())
                self._account.write(self._folder)
            sessions = round(self._account.habits.rate * TICK)
            if sessions:
                self._crowd.search(client, self._account.habits, sessions)
                self._account.searches += sessions
            # Whoever cannot keep up does not hurry afterwards.
            due = max(due + TICK, time.time() - TICK)
            time.sleep(max(due - time.time(), 0.0))

    def _decide(self) -> None:
        """Do as was wished, or change by oneself when it is time."""
        account, path = self._account, self._folder / WISHES
        wished = read_json(path) if path.exists() else {}
        if wished != self._heard:
            self._heard = wished
            if "eta" in wished:
                account.next_change = None
            account.behave(account.habits.wished(wished))
        change = account.next_change
        if change is not None and time.time() >= change["time"]:
            account.next_change = None
            account.behave(account.habits.wished({"eta": change["eta"]}))


def main() -> None:
    """Be the users of a service, whose address comes on the standard input once it answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the demo keeps its files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--change", type=float, default=CHANGE, help="0: no change by itself")
    asked = parser.parse_args()
    world, start = DemoWorld.of(asked.seed), Start.read(asked.folder)
    crowd = Crowd(world, start.quality, asked.seed)
    users = Users(crowd, Account(DEPTH, start.curve), asked.folder, asked.change)
    address, token = sys.stdin.readline().strip(), (asked.folder / "token").read_text()
    if address:
        users.live(SearchClient(address, token))


if __name__ == "__main__":
    main()
