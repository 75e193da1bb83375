"""Which settings of Redis keep what it acknowledges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dualrank.errors import SettingsError, StorageError

SYNCING = "*append*"
"""The settings that say whether Redis syncs what it is told before it answers."""
_NEEDED = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}


def require_safe(client: Any, place: str) -> None:
    """Refuse a Redis that may lose what it acknowledged, or that does not say."""
    import redis

    try:
        syncing, memory = client.config_get(SYNCING), client.config_get("maxmemory*")
    except redis.ResponseError as error:
        raise SettingsError(
            f"{place}: CONFIG GET is forbidden ({error}), so that nobody can tell whether it syncs "
            "what it acknowledges; allow this user `+config|get`"
        ) from error
    require_synced(syncing, place)
    found = _texts(memory)
    policy = found.get("maxmemory-policy", "")
    if found.get("maxmemory", "0") != "0" and policy.startswith("allkeys"):
        raise SettingsError(
            f"{place}: maxmemory-policy {policy} may remove events that nobody has read; set "
            "`maxmemory-policy noeviction`"
        )


def require_synced(syncing: Mapping[Any, Any], place: str) -> None:
    """Refuse settings with which acknowledged events could be lost."""
    found = _texts(syncing)
    for setting, needed in _NEEDED.items():
        if found.get(setting) != needed:
            raise StorageError(
                f"{place}: {setting} is {found.get(setting)}, so that events which were "
                f"acknowledged could be lost; set `{setting} {needed}`"
            )


def _texts(found: Mapping[Any, Any]) -> dict[str, str]:
    """Names and values, which come as bytes or as text."""
    return {_text(name): _text(value) for name, value in found.items()}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
