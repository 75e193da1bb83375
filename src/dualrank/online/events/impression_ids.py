"""Ids of impressions that cannot be made up: a time, random bits, and a signature of both.

A server tells its own ids from forged ones without looking anything up, and several servers that
share a key know each other's. What lies in an id is no secret: the second in which it was made, so
that ids which are written together lie together in an index, and 72 random bits.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import time
from pathlib import Path

from dualrank.errors import CheckpointError, StorageError
from dualrank.sentences import reason_of
from dualrank.storage import read_file

SECRET = "secret"
_KEY_BYTES = 32
_RANDOM_BYTES = 9
_SIGNATURE_BYTES = 11
_FORM = re.compile(r"[A-Za-z0-9_-]{32}")


class ImpressionIds:
    """Makes ids that are signed with a key, and knows its own.

    >>> ids = ImpressionIds(b"k" * 32)
    >>> made = ids.new()
    >>> ids.is_ours(made), ids.is_ours("A" * 32), ImpressionIds(b"x" * 32).is_ours(made)
    (True, False, False)
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self) -> str:
        """An id that nobody has: 32 letters, digits, `-` and `_`."""
        second = int(time.time()) & 0xFFFFFFFF
        said = second.to_bytes(4, "big") + secrets.token_bytes(_RANDOM_BYTES)
        return base64.urlsafe_b64encode(said + self._signature(said)).decode("ascii")

    def is_ours(self, text: str) -> bool:
        """Whether this key made the id."""
        if not _FORM.fullmatch(text):
            return False
        found = base64.urlsafe_b64decode(text)
        said, signature = found[:-_SIGNATURE_BYTES], found[-_SIGNATURE_BYTES:]
        return hmac.compare_digest(signature, self._signature(said))

    def _signature(self, said: bytes) -> bytes:
        return hmac.digest(self._key, said, hashlib.sha256)[:_SIGNATURE_BYTES]


def key_in(folder: Path) -> bytes:
    """The key of a folder of versions, made by the first who asks; nobody else may read it."""
    path = folder / SECRET
    if not path.exists():
        _make(path)
    try:
        key = bytes.fromhex(read_file(path, 1_000).decode("ascii"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: the key cannot be read: {reason_of(error)}") from error
    if len(key) != _KEY_BYTES:
        raise CheckpointError(
            f"{path}: damaged: {len(key)} bytes, expected {_KEY_BYTES}; remove it, and impressions "
            "from before are no longer known"
        )
    return key


def _make(path: Path) -> None:
    """Put a new key there, whole at once; who comes second finds that of the first."""
    temporary = path.with_name(f".{SECRET}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(held, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES).hex().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        finally:
            temporary.unlink()
    except FileExistsError:
        return
    except OSError as error:
        raise StorageError(f"{path}: the key cannot be written: {error.strerror}") from error
