"""`dualrank learn`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.options import imports
from dualrank.cli.terminal import Json, answer, one_bar, open_features
from dualrank.extras import require
from dualrank.sentences import counted

if TYPE_CHECKING:
    from dualrank.online.learner.learner import LearnerSettings


@imports("dualrank.online.learner.learner:LearnerSettings")
def learn(
    models: Annotated[
        Path,
        typer.Argument(metavar="MODELS", help="The folder of versions, which servers read too."),
    ],
    events: Annotated[
        Path, typer.Option("--events", help="The folder of events, with closed segments.")
    ],
    stream: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="redis://…",
            help="Collect what many servers put on this stream into the folder of events.",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            help="LETOR text or Parquet; without it, features are those that requests brought.",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option("--wait", help="Seconds that a displayed list waits for events.", min=0),
    ] = 300.0,
    every: Annotated[
        float, typer.Option("--every", help="Seconds between two closed segments.", min=0.1)
    ] = 10.0,
    once: Annotated[
        bool, typer.Option("--once", help="Learn from the segments that are there, and end.")
    ] = False,
    *,
    settings: LearnerSettings,
    as_json: Json = False,
) -> None:
    """Follow the events of a service: learn from them in rounds, and publish versions.

    A version goes live unless held-out clicks find it worse than the live one; one that turns out
    worse is taken back. `dualrank serve --learn` starts this beside itself; by itself it serves
    many servers. It can be killed at any moment, and goes on where it was. A segment that is
    missing or damaged is waited for and then left out; with --once it ends there with an error.

    Example: dualrank learn models/ --events events/ --features features.parquet

    Example: dualrank learn models/ --events events/ --from redis://localhost:6379/0
    """
    from dualrank.online.events.segments import Segments
    from dualrank.online.learner.following import catch_up, follow
    from dualrank.online.learner.learner import Learner
    from dualrank.online.versions import Versions
    from dualrank.storage import writing_alone

    if stream is not None:
        require("redis", "redis")
    versions = Versions.find(models)
    table = None
    if features is not None:
        table = open_features(features, versions.load(versions.live.number))
    with ExitStack() as open_things:
        open_things.enter_context(writing_alone(versions.folder / "learning"))
        following: Callable[..., None] = follow
        if stream is not None:
            from dualrank.online.events.collecting import collecting

            held = collecting(stream, events, wait=wait, every=every)
            following = partial(follow, problem=open_things.enter_context(held))
        learner = Learner(versions, Segments(events), settings, table)
        with one_bar("segments learned", endless=not once) as heard:
            (catch_up if once else following)(learner, heard=heard)
    live = versions.live
    content = {"live": live.number, **asdict(learner.state)}
    answer(
        as_json,
        content,
        f"learned from {counted(learner.state.sessions, 'sessions')} up to segment "
        f"{learner.state.learned}; version {live.number} is live: {live.why}",
    )
