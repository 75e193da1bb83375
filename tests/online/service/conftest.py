"""A service in memory: versions whose scores are known, and a transport that forgets nothing."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

import httpx
import numpy as np
import pytest
import torch

from dualrank.data.scaling import Scaler
from dualrank.errors import StorageError
from dualrank.learning.model import Model
from dualrank.online.service.live_model import LiveModel
from dualrank.online.service.service import Service
from dualrank.online.service.service_app import make_app
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.online.versions import Versions
from dualrank.rankers.network import Network

TOKEN = "0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def model_of(number):
    """A model whose score is `number` times the first feature."""
    ranker = Network((2, 1))
    ranker.weights[0][:] = torch.tensor([[float(number), 0.0]])
    return Model(ranker, Scaler("none", 2, np.arange(2), np.zeros(2), np.ones(2)), kind="linear")


class Ids:
    """Ids that tests know."""

    def __init__(self):
        self.made = set()

    def new(self):
        self.made.add(made := secrets.token_hex(8))
        return made

    def is_ours(self, text):
        return text in self.made


class Memory:
    """A transport that keeps what it was handed."""

    def __init__(self):
        self.shown, self.events, self.problem, self.closed = [], {}, None, False

    def show(self, impression):
        self.shown.append(impression)

    async def record(self, events):
        if self.problem is not None:
            raise StorageError(self.problem)
        return [self._outcome(each) for each in events]

    def _outcome(self, event):
        found = [each for each in self.shown if each.impression_id == event.impression_id]
        if not found:
            return "unknown impression"
        if event.doc_id not in found[0].doc_ids:
            return "not displayed"
        key = event.impression_id, event.event_id
        outcome = "again" if key in self.events else "new"
        self.events.setdefault(key, event)
        return outcome

    def close(self):
        self.closed = True


@dataclass
class Asking:
    """A service with a client that asks it in this process."""

    service: Service
    transport: Memory
    app: object
    headers: dict = field(default_factory=dict)

    def client(self):
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, raise_app_exceptions=False),
            base_url="http://127.0.0.1",
        )

    def ask(self, method, path, headers=None, **more):
        async def once():
            async with self.client() as client:
                sent = {**self.headers, **(headers or {})}
                return await client.request(method, path, headers=sent, **more)

        return asyncio.run(once())

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body, **more):
        if isinstance(body, bytes):
            kind = {"Content-Type": "application/json", **more.pop("headers", {})}
            return self.ask("POST", path, content=body, headers=kind, **more)
        return self.ask("POST", path, json=body, **more)


@pytest.fixture
def versions(tmp_path):
    return Versions.create(tmp_path / "models", model_of(1))


@pytest.fixture
def serving(versions):
    """Make a service of these settings."""

    def make(table=None, token=None, **settings):
        transport = Memory()
        service = Service(
            LiveModel(versions),
            transport,
            Ids(),
            ServiceSettings(**settings),
            table=table,
            token=token,
            seed=0,
        )
        return Asking(service, transport, make_app(service))

    return make


@pytest.fixture
def asking(serving):
    return serving()


@pytest.fixture
def query():
    """A query with documents whose first features are these."""

    def make(*values, name="q", **more):
        documents = [{"doc_id": f"d{i}", "features": [v, 0]} for i, v in enumerate(values)]
        return {"query_id": name, "documents": documents, **more}

    return make


@pytest.fixture
def bearer():
    return BEARER


@pytest.fixture
def token():
    return TOKEN


@pytest.fixture(scope="session")
def model_numbered():
    return model_of
