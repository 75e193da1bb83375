"""`RedisStream`: impressions and events on a Redis stream, which many servers write and one reads.

Servers hold nothing: what they acknowledge has been synced by Redis, which is asked with every
group whether it does so. A group is one transaction of Redis, its impressions before its events.
The store that copies the stream knows what came twice (`EventStore.copy`).

    dualrank:events        the stream; entries go when they have been copied
    dualrank:shown:ID      the documents of an impression, for servers that get its events
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dualrank.errors import DataError, SettingsError, StorageError
from dualrank.extras import require
from dualrank.online.events.event_kinds import can_be_kind
from dualrank.online.events.group_commit import GroupCommit
from dualrank.online.events.redis_settings import SYNCING, require_safe, require_synced
from dualrank.online.events.storable import require_storable, require_storable_event
from dualrank.online.events.stream_entries import pack, unpack
from dualrank.online.records import Event, Impression, Outcome
from dualrank.sentences import reason_of

if TYPE_CHECKING:
    from dualrank.online.events.event_store import EventStore

REMEMBERED = 3_600
"""Seconds for which servers know the documents of an impression, and take events for it."""
_RECORDS_OF_ENTRY = 500
_ENTRIES_AT_ONCE = 50
_GROUP, _CONSUMER = "collector", "collector"
_ABANDONED = 60.0
"""Seconds after which entries that another reader took and did not finish are taken over."""
_LONGEST_WAIT = 5.0
_LOOKS_AGAIN = (0.02, 0.05, 0.1, 0.2)
"""Seconds between looks for an impression that another server may be handing over just now."""
_log = logging.getLogger(__name__)


class RedisStream:
    """Where servers that hold no state put what happened; a `Transport`.

    `url` is as `redis-cli -u` takes it. `name` is what its keys begin with.
    """

    def __init__(self, url: str, *, name: str = "dualrank", remembered: float = REMEMBERED) -> None:
        self._redis = require("redis", "redis")
        self._stream = f"{name}:events"
        self._shown = f"{name}:shown:"
        self._remembered = int(remembered)
        try:
            self._client = self._connect(url)
            self._reader = self._connect(url)
        except ValueError as error:
            raise SettingsError(
                f"no address of Redis such as redis://host:6379: {error}"
            ) from error
        self._place = self._said_place()
        self._counting = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._caught_up = False
        self.refused = 0
        """Entries of the stream that were none of ours, and were removed."""
        with self._mendable():
            require_safe(self._client, self._place)
        self._group = GroupCommit(self._commit, "dualrank stream")

    def show(self, impression: Impression) -> None:
        """Hand an impression over; it is on disk before any event of it is acknowledged."""
        require_storable(impression)
        self._group.show(impression)

    async def record(self, events: Sequence[Event]) -> list[Outcome]:
        """Put events on the disk of Redis, and say what became of each.

        Whether an event came before, or comes late, is known to who copies the stream: it is `new`.
        """
        for event in events:
            require_storable_event(event)
        outcomes = await self._added(events)
        for pause in _LOOKS_AGAIN:
            unknown = [n for n, said in enumerate(outcomes) if said == "unknown impression"]
            if not unknown:
                break
            await asyncio.sleep(pause)
            again = await self._added([events[number] for number in unknown])
            for number, said in zip(unknown, again, strict=True):
                outcomes[number] = said
        with self._counting:
            self._counts.update(outcomes)
        return outcomes

    async def _added(self, events: Sequence[Event]) -> list[Outcome]:
        return await asyncio.wrap_future(self._group.record(events))

    def close(self) -> None:
        """Write what was handed over, and let go."""
        self._group.close()
        self._client.close()
        self._reader.close()

    def __enter__(self) -> RedisStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def problem(self) -> str | None:
        """Why nothing can be written just now; None where all is well."""
        return self._group.problem

    def counts(self) -> dict[str, int]:
        """How much this process handed over: `impressions`, events by outcome, what waits."""
        with self._counting:
            return {
                "impressions": 0,
                **self._counts,
                "events": self._counts["new"],
                "dropped": self._group.dropped,
                "waiting": self._group.waiting,
            }

    def copy_into(self, store: EventStore, *, wait: float = 1.0) -> int:
        """Copy what the stream holds into a store, and remove it from the stream.

        Waits up to `wait` seconds for something to come; gives how many entries were copied. What
        is removed has been committed by the store; what a killed reader committed and did not
        remove comes again, and is known there.
        """
        with self._mendable():
            if not self._caught_up:
                # What an earlier process committed may be forgotten only when it cannot come again.
                store.may_forget = False
                self._create_group()
            entries = self._entries(wait)
            if not entries:
                store.may_forget = True
                return 0
            impressions, events = list[Impression](), list[Event]()
            for name, fields in entries:
                try:
                    shown, happened = unpack(fields or {}, int(name.split(b"-")[0]) / 1_000)
                except DataError as error:
                    self.refused += 1
                    _log.warning("entry %s of the stream is left out: %s", name.decode(), error)
                    continue
                impressions += shown
                events += happened
            # Whatever fails from here on, these entries are read again before any new one.
            caught_up, self._caught_up = self._caught_up, False
            store.may_forget = False
            store.copy(impressions, events)
            names = [name for name, _ in entries]
            with self._reader.pipeline(transaction=True) as pipe:
                pipe.xack(self._stream, _GROUP, *names)
                pipe.xdel(self._stream, *names)
                pipe.execute()
            self._caught_up = store.may_forget = caught_up
            return len(entries)

    def _entries(self, wait: float) -> list[tuple[bytes, dict[bytes, bytes] | None]]:
        """What was read before and not finished, by this reader or a dead one; then what is new."""
        if not self._caught_up:
            found = self._read("0", None)
            if not found:
                _, found, *_ = self._reader.xautoclaim(
                    self._stream,
                    _GROUP,
                    _CONSUMER,
                    int(_ABANDONED * 1_000),
                    "0-0",
                    count=_ENTRIES_AT_ONCE,
                )
            if found:
                return found
            self._caught_up = True
        return self._read(">", max(int(min(wait, _LONGEST_WAIT) * 1_000), 1))

    def _read(self, after: str, block: int | None) -> list[tuple[bytes, dict[bytes, bytes] | None]]:
        answer = self._reader.xreadgroup(
            _GROUP, _CONSUMER, {self._stream: after}, count=_ENTRIES_AT_ONCE, block=block
        )
        return answer[0][1] if answer else []

    def _create_group(self) -> None:
        try:
            self._reader.xgroup_create(self._stream, _GROUP, id="0", mkstream=True)
        except self._redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def _commit(self, impressions: Sequence[Impression], events: Sequence[Event]) -> list[Outcome]:
        """Add a group to the stream in one transaction, which is synced before the answer."""
        with self._mendable():
            documents = self._documents(impressions, events)
            outcomes: list[Outcome] = []
            for event in events:
                known = documents.get(event.impression_id)
                if known is None:
                    outcomes.append("unknown impression")
                elif event.doc_id not in known:
                    outcomes.append("not displayed")
                else:
                    outcomes.append("new" if can_be_kind(event.kind) else "unknown kind")
            taken = [e for e, said in zip(events, outcomes, strict=True) if said == "new"]
            if impressions or taken:
                self._add(impressions, taken)
        with self._counting:
            self._counts["impressions"] += len(impressions)
        return outcomes

    def _add(self, impressions: Sequence[Impression], events: Sequence[Event]) -> None:
        with self._client.pipeline(transaction=True) as pipe:
            pipe.config_get(SYNCING)
            for part in _parts(impressions):
                pipe.xadd(self._stream, pack(part, []))
            for each in impressions:
                pipe.set(
                    self._key(each.impression_id), json.dumps(each.doc_ids), ex=self._remembered
                )
            for part in _parts(events):
                pipe.xadd(self._stream, pack([], part))
            found, *_ = pipe.execute()
        require_synced(found, self._place)

    def _documents(
        self, impressions: Sequence[Impression], events: Sequence[Event]
    ) -> dict[str, Sequence[str]]:
        """The documents of the impressions that events belong to, as far as they are known."""
        found: dict[str, Sequence[str]] = {each.impression_id: each.doc_ids for each in impressions}
        sought = list({e.impression_id for e in events if e.impression_id not in found})
        if sought:
            texts = self._client.mget([self._key(each) for each in sought])
            found |= {
                each: json.loads(text) for each, text in zip(sought, texts, strict=True) if text
            }
        return found

    def _key(self, impression_id: str) -> str:
        return self._shown + impression_id

    def _connect(self, url: str) -> Any:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return self._redis.Redis.from_url(
            url,
            socket_timeout=2 * _LONGEST_WAIT,
            socket_connect_timeout=3.0,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
        )

    def _said_place(self) -> str:
        """Where Redis is, without the password that an address may hold."""
        known = self._client.connection_pool.connection_kwargs
        return f"Redis at {known.get('host', known.get('path', '?'))}:{known.get('port', '')}"

    @contextmanager
    def _mendable(self) -> Iterator[None]:
        """What Redis cannot do, as one sentence."""
        try:
            yield
        except (self._redis.RedisError, OSError) as error:
            self._caught_up = False
            raise StorageError(
                f"{self._place}: cannot be reached, or does not do what it is asked "
                f"({reason_of(error)})"
            ) from error


def _parts(records: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(records), _RECORDS_OF_ENTRY):
        yield records[start : start + _RECORDS_OF_ENTRY]
