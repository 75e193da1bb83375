"""The time of a log, cut into periods of about equally many sessions."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from dualrank.data.log.engine import Engine, Type, only_value

SAMPLED_TIMES = 1_000_000


def cut(engine: Engine, parts: int, kind: Type) -> tuple[list[float], tuple[str, ...]]:
    """Where periods begin, and their names; none where there is only one time.

    Of more than a million sessions, those are asked whose name has a low digest: a sample that is
    the same on every engine and for every order of the log.
    """
    sessions = only_value(engine, "SELECT count(time) FROM sessions")
    condition = "time IS NOT NULL"
    if sessions > SAMPLED_TIMES:
        highest = int(SAMPLED_TIMES / sessions * 16**8)
        condition += f" AND md5(CAST(session AS STRING)) < '{highest:08x}'"
    found = engine.fetch(f"SELECT time FROM sessions WHERE {condition}")["time"]
    times = np.sort(found.to_numpy())
    edges = np.unique(times[[len(times) * part // parts for part in range(parts) if len(times)]])
    if len(edges) < 2:
        return [], ()
    names = [_name(edge, kind) for edge in edges]
    if len(set(names)) < len(names):  # A log of a second or two, as a service writes them.
        names = [_name(edge, kind, fine=True) for edge in edges]
    if len(set(names)) < len(names):
        names = [repr(float(edge)) for edge in edges]
    return edges.tolist(), tuple(names)


def _name(seconds: float, kind: Type, *, fine: bool = False) -> str:
    if kind in ("integer", "number"):
        return f"{seconds:.15g}"
    try:
        form = "%Y-%m-%dT%H:%M:%S.%f" if fine else "%Y-%m-%dT%H:%M:%S"
        return datetime.fromtimestamp(seconds, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        # A number written as text, such as milliseconds, is no date that can be named.
        return f"{seconds:.15g}"
