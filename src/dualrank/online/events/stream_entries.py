"""What stands in an entry of a stream: a group of impressions and events, as JSON and raw floats.

Whoever can write to the stream may have written anything: what is read is checked as if it came
from the network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dualrank.errors import DataError
from dualrank.online.events.event_kinds import can_be_kind
from dualrank.online.events.storable import require_storable, require_storable_event
from dualrank.online.records import Event, Impression
from dualrank.sentences import reason_of
from dualrank.storage import parse_json

SAID, FEATURES = b"said", b"features"
_IMPRESSION = ("impression_id", "query_id", "doc_ids", "version", "swapped", "client")
_EVENT = ("event_id", "impression_id", "doc_id", "kind", "amount")


def pack(impressions: Sequence[Impression], events: Sequence[Event]) -> dict[bytes, bytes]:
    """The fields of an entry."""
    said = {
        "impressions": [
            [*(getattr(each, name) for name in _IMPRESSION), len(each.features)]
            for each in impressions
        ],
        "events": [[getattr(each, name) for name in _EVENT] for each in events],
    }
    features = b"".join(each.features for each in impressions)
    return {SAID: json.dumps(said).encode(), FEATURES: features}


def unpack(fields: Mapping[bytes, bytes], time: float) -> tuple[list[Impression], list[Event]]:
    """What an entry that was added at a time says; a `DataError` where it is none of ours."""
    try:
        said: Any = parse_json(fields[SAID])
        features = memoryview(fields.get(FEATURES, b""))
        impressions, start = list[Impression](), 0
        for impression_id, query, documents, version, swapped, client, size in said["impressions"]:
            impression = Impression(
                impression_id,
                time,
                query,
                _listed(documents),
                _whole(version),
                _whole(swapped),
                client,
                bytes(features[start : start + _whole(size)]),
            )
            start += size
            if len(impression.features) != size:
                raise ValueError("features are missing")
            require_storable(impression)
            impressions.append(impression)
        events = list[Event]()
        for event_id, impression_id, document, kind, amount in said["events"]:
            event = Event(event_id, impression_id, document, kind, float(amount), time)
            require_storable_event(event)
            if not can_be_kind(kind):
                raise ValueError("no kind of events")
            events.append(event)
    except (TypeError, LookupError, ValueError, AttributeError) as error:
        raise DataError(
            f"an entry of the stream is none of dualrank: {reason_of(error)}"
        ) from error
    return impressions, events


def _listed(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("no list of documents")
    return tuple(value)


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError("no whole number")
    return value
