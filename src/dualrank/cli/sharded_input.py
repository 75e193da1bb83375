"""Logs in shards, for commands that read them one shard after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualrank.cli.terminal import one_bar
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import DataError, SettingsError

if TYPE_CHECKING:
    from dualrank.data.log_parts import LogParts


def open_shards(log: str | Path, options: LogOptions | None = None) -> LogParts | None:
    """The shards of a log, verified with a bar; nothing where it is not in shards."""
    from dualrank.data.log_parts import LogParts
    from dualrank.data.shards.sharded_log import ShardedLog, is_sharded

    if not is_sharded(log):
        return None
    sharded = ShardedLog.open(log)
    options = options or LogOptions()
    plain = replace(options, contexts=(), event_kinds=(), partial=False, max_bad_share=0.0)
    if plain != LogOptions():
        raise SettingsError(
            f"{log}: this log is reduced already; columns, positions, periods and traffic filters "
            "are given when it is reduced"
        )
    for context in options.contexts:
        if context not in sharded.columns:
            known = ", ".join(sharded.columns) or "none"
            raise DataError(
                f"{log}: the log has no column {context!r} beside the clicks; it has {known}"
            )
    with one_bar(f"verifying {Path(log).name}") as report:
        return LogParts.of(sharded, report)
