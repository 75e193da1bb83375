"""Logs in shards, for commands that read them one shard after the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dualrank.cli.terminal import one_bar
from dualrank.data.log.log_options import LogOptions

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
    options.require_reduced(str(log))
    options.require_kept(str(log), sharded.columns, sharded.events)
    with one_bar(f"verifying {Path(log).name}") as report:
        return LogParts.of(sharded, report)
