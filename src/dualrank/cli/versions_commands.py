"""`dualrank versions` and `dualrank rollback`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.terminal import Json, Seed, answer

if TYPE_CHECKING:
    from dualrank.online.versions import Note, Version
    from dualrank.report import Table

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="The folder of versions, or the folder of events of a service that made one.",
    ),
]


def versions(
    folder: Folder,
    count: Annotated[
        int, typer.Option("--last", help="How many to list, the latest first.", min=1)
    ] = 20,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """List the versions of a model: which is live, what became of the others, and why.

    Example: dualrank versions events/
    """
    from dualrank.online.versions import Versions

    found = Versions.find(folder)
    note = found.note()
    latest = sorted(note.versions.values(), key=lambda each: -each.number)[:count]
    content = {
        "folder": str(found.folder),
        "live": note.live,
        "anchor": note.anchor,
        "versions": [{**asdict(each), "kept": found.has(each.number)} for each in latest],
    }
    rest = len(note.versions) - len(latest)
    answer(
        as_json,
        content,
        _table(note, latest, [found.has(each.number) for each in latest]),
        f"and {rest} before them" if rest else None,
    )


def rollback(
    folder: Folder,
    to: Annotated[
        int | None, typer.Option("--to", help="Which version; without it, the one before.", min=1)
    ] = None,
    why: Annotated[
        str, typer.Option("--why", help="What the history says about it.")
    ] = "rolled back by hand",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Put another version of the model in front of users: the one before, or the one named.

    Every server of the folder answers with it from the next request on; a learner goes on from it,
    and takes it back where held-out clicks find it worse than the one before.

    Example: dualrank rollback events/ --to 12 --why "prices are missing since noon"
    """
    from dualrank.online.versions import Versions

    found = Versions.find(folder)
    before = found.live.number
    live = found.roll_back(why, to=to, over=before)
    content: dict[str, Any] = {"folder": str(found.folder), "before": before, **asdict(live)}
    answer(as_json, content, f"version {live.number} is live in the place of {before}: {why}")


def _table(note: Note, latest: list[Version], kept: list[bool]) -> Table:
    from dualrank.report import Table
    from dualrank.report.table import Row

    columns = ("state", "made", "sessions", "goes on from", "why")
    rows = [
        Row(
            f"{each.number}{' (anchor)' if each.number == note.anchor else ''}",
            (
                each.state if there else f"{each.state}, removed",
                _when(each.made),
                f"{each.sessions:,}",
                "" if each.parent is None else str(each.parent),
                each.why,
            ),
        )
        for each, there in zip(latest, kept, strict=True)
    ]
    first = ("state", "why", "made")
    return Table(columns, tuple(rows), corner="version", words=("state", "why"), kept_first=first)


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M:%S")
