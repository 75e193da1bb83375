"""What a transport takes: checked once, where it is handed over, before it waits with others.

What cannot be written must not spoil the group that it would be written with.
"""

from __future__ import annotations

from dualrank.data.log.event_amounts import LARGEST
from dualrank.errors import DataError
from dualrank.online.records import Event, Impression
from dualrank.sentences import shortened


def require_storable(impression: Impression) -> None:
    """Refuse an impression that no click log could hold."""
    _require_text(impression.impression_id, "impression_id")
    _require_text(impression.query_id, "query_id")
    _require_text(impression.client, "client", empty=True)
    for document in impression.doc_ids:
        _require_text(document, "doc_id")
    count = len(impression.doc_ids)
    if count == 0 or len(set(impression.doc_ids)) < count:
        raise DataError(f"an impression shows documents, each once; found {count} ids")
    if len(impression.features) % (4 * count):
        raise DataError(
            f"features of {count} documents are rows of float32, equally many for each; found "
            f"{len(impression.features)} bytes"
        )
    for number in (impression.version, impression.swapped):
        if not 0 <= number < 2**31:
            raise DataError(f"version and swapped are whole numbers from 0, not {number}")


def require_storable_event(event: Event) -> None:
    """Refuse an event that no click log could hold."""
    _require_text(event.event_id, "event_id")
    _require_text(event.impression_id, "impression_id")
    _require_text(event.doc_id, "doc_id")
    if not 0 <= event.amount < LARGEST:
        raise DataError(
            f"the amount of an event is a number from 0 to below {LARGEST:g}, not {event.amount}"
        )


def _require_text(text: str, name: str, *, empty: bool = False) -> None:
    """Text that is there, and that UTF-8 and every database can hold."""
    if (not text and not empty) or "\0" in text or not _is_unicode(text):
        raise DataError(f"{name} is text that is not empty, and not {shortened(text)}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
