"""What a service does with requests, whatever brings them: rank, record, take back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

from pydantic_core import to_json

from dualrank.errors import DataError, SettingsError, StorageError
from dualrank.online.events.event_kinds import can_be_kind
from dualrank.online.records import CLICK, Event, Impression, Outcome, Transport
from dualrank.online.service.bodies import (
    Events,
    OneEvent,
    Queries,
    Query,
    Recorded,
    Rollback,
    read_body,
    read_one_or_several,
)
from dualrank.online.service.exploration import Exploration
from dualrank.online.service.feature_table import FeatureTable
from dualrank.online.service.live_model import LiveModel
from dualrank.online.service.protection import RefusedError, Token
from dualrank.online.service.ranking_answer import Candidates, candidates_of, rank, score
from dualrank.online.service.service_metrics import ServiceMetrics
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.online.service.service_status import StatusBoard

FEW_ROWS = 2_000
"""So many documents are scored at once; for more, others need not wait."""
LONGEST_COMMIT = 30.0
"""Seconds that events may wait for the disk."""
_WHY_REFUSED: dict[Outcome, str] = {
    "unknown impression": "no such impression was displayed",
    "not displayed": "this document was not displayed in that impression",
    "unknown kind": "events of this kind are not taken: a kind is a short plain name, no column "
    "of a click log, and there are not too many of them",
}

log = logging.getLogger(__name__)


class Ids(Protocol):
    """Makes ids of impressions, and knows its own."""

    def new(self) -> str:
        """One that nobody has."""

    def is_ours(self, text: str) -> bool:
        """Whether this was made here."""


class Demo(Protocol):
    """Simulated users beside a service."""

    def status(self) -> dict[str, Any]:
        """What a page shows of them."""

    def change(self, values: dict[str, Any]) -> dict[str, Any]:
        """Turn their knobs; a DataError where a value is none. What holds then."""


class Service:
    """A live model, a place for events, and the rules between them."""

    def __init__(
        self,
        live: LiveModel,
        transport: Transport,
        ids: Ids,
        settings: ServiceSettings | None = None,
        *,
        table: FeatureTable | None = None,
        token: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.settings = settings or ServiceSettings()
        self.live, self.transport, self.ids, self.table = live, transport, ids, table
        self.token = Token(token)
        self.demo: Demo | None = None
        self.stopping = asyncio.Event()
        self.exploration = Exploration(self.settings.explore, seed)
        self.metrics = ServiceMetrics()
        self.metrics.watch(self._watched)
        self._outcomes: Counter[str] = Counter()
        self._impressions = 0
        self.board = StatusBoard(
            live, self.counts, lambda: self.demo.status() if self.demo else None
        )

    async def rank(self, body: bytes) -> bytes:
        """The answer to a query, or to several, as JSON."""
        limits = self.settings
        live = self.live.current  # once: whatever goes live meanwhile is for the next request
        asked = read_one_or_several(Query, Queries, "queries", body)
        several = "queries" in asked
        queries: list[Query] = asked["queries"] if several else [asked]
        if len(queries) > limits.max_queries:
            raise DataError(
                f"there are {len(queries):,} queries; this service takes at most "
                f"{limits.max_queries:,} at once"
            )
        candidates = [candidates_of(query, live.inputs, self.table, limits) for query in queries]
        if sum(len(each.doc_ids) for each in candidates) <= FEW_ROWS:
            scores = score(live.model, candidates)
        else:
            scores = await asyncio.to_thread(score, live.model, candidates)
        answers = [
            self._displayed(each, values, live.number)
            for each, values in zip(candidates, scores, strict=True)
        ]
        return to_json({"rankings": answers} if several else answers[0])

    def _displayed(self, candidates: Candidates, scores: Any, version: int) -> dict[str, Any]:
        """Rank, and hand over what the user will see."""
        ranked = rank(candidates, scores, self.exploration)
        impression_id = self.ids.new()
        self.transport.show(
            Impression(
                impression_id,
                time.time(),
                candidates.query_id,
                ranked.shown,
                version,
                ranked.swapped,
                candidates.client,
                ranked.features,
            )
        )
        self._impressions += 1
        self.metrics.impressions.inc()
        if ranked.swapped:
            self.metrics.explored.inc()
        return {
            "impression_id": impression_id,
            "version": version,
            "results": ranked.results,
            "swapped": ranked.swapped,
        }

    async def record(self, body: bytes) -> Recorded:
        """Put events on disk, and say what became of them."""
        asked = read_one_or_several(OneEvent, Events, "events", body)
        given: list[OneEvent] = asked.get("events", [asked])
        if len(given) > self.settings.max_events:
            raise DataError(
                f"there are {len(given):,} events; this service takes at most "
                f"{self.settings.max_events:,} at once"
            )
        now = time.time()
        why = [self._why_not(each) for each in given]
        taken = [i for i, reason in enumerate(why) if reason is None]
        outcomes = await self._written([_event(given[i], now) for i in taken])
        counted = Counter(outcomes)
        for i, outcome in zip(taken, outcomes, strict=True):
            why[i] = _WHY_REFUSED.get(outcome)
        refused = [(i, reason) for i, reason in enumerate(why) if reason is not None]
        for name in ("new", "again", "late"):
            self.metrics.happened(name, counted[name])
            self._outcomes[name] += counted[name]
        self.metrics.happened("refused", len(refused))
        self._outcomes["refused"] += len(refused)
        return {
            "new": counted["new"],
            "again": counted["again"],
            "late": counted["late"],
            "refused": [{"index": i, "why": reason} for i, reason in refused],
        }

    def _why_not(self, event: OneEvent) -> str | None:
        if not can_be_kind(event.get("kind", CLICK)):
            return _WHY_REFUSED["unknown kind"]
        if not self.ids.is_ours(event["impression_id"]):
            return _WHY_REFUSED["unknown impression"]
        return None

    async def _written(self, events: Sequence[Event]) -> list[Outcome]:
        if not events:
            return []
        try:
            async with asyncio.timeout(LONGEST_COMMIT):
                return await self.transport.record(events)
        except TimeoutError:
            raise StorageError(
                f"the events were not on disk after {LONGEST_COMMIT:g} seconds; send them again: "
                "each counts once"
            ) from None

    async def roll_back(self, body: bytes) -> dict[str, Any]:
        """Put another version in front of users: the one before, or the one that is named."""
        asked = read_body(Rollback, body)
        why = asked.get("why") or "by hand"
        versions = self.live.versions

        def change() -> dict[str, Any]:
            live = versions.live.number
            follows = versions.roll_back(why, to=asked.get("to"), over=live)
            self.live.look()
            return {"before": live, "live": asdict(follows)}

        try:
            done = await asyncio.to_thread(change)
        except SettingsError as error:
            raise RefusedError(409, str(error)) from error
        log.warning("version %d was put live by hand: %s", done["live"]["number"], why)
        return done

    def counts(self) -> dict[str, Any]:
        """Impressions and events, of the store where it counts them, else of this process."""
        own = {"impressions": self._impressions, "events": self._outcomes["new"], "waiting": 0}
        own |= {name: self._outcomes[name] for name in ("again", "late", "refused")}
        ask = getattr(self.transport, "counts", None)
        return own if ask is None else own | ask()

    def why_not_ready(self) -> str | None:
        """Why requests cannot be answered, or events not kept."""
        if self.stopping.is_set():
            return "the service is stopping"
        return getattr(self.transport, "problem", None)

    def _watched(self) -> dict[str, Any]:
        """What is asked when metrics are read."""
        note = self.live.note
        return {
            "live": note.versions[note.live],
            "answers": self.live.current.number,
            "states": Counter(each.state for each in note.versions.values()),
            "record": self.board.record(),
            "waiting": self.counts().get("waiting", 0),
            "failures": self.live.failures,
            "ready": self.why_not_ready() is None,
        }


def _event(given: OneEvent, now: float) -> Event:
    """An event as it is kept: its id belongs to a document and a kind.

    A client that counts its events anew for each document loses none. No text that a client gives
    has the sign that joins these parts.
    """
    document, kind = given["doc_id"], given.get("kind", CLICK)
    own = [given["event_id"]] if "event_id" in given else []
    event_id = "\x1f".join([*own, document, kind])
    amount = given.get("amount", 1.0)
    return Event(event_id, given["impression_id"], document, kind, amount, now)
