"""`dualrank serve`."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.options import Typed, Without, imports
from dualrank.cli.outputs import GENERATED
from dualrank.cli.plan_swaps_command import as_share
from dualrank.cli.terminal import Json, answer
from dualrank.errors import SettingsError
from dualrank.progress import show_progress

if TYPE_CHECKING:
    from dualrank.online.learner.learner import LearnerSettings
    from dualrank.online.service.service_settings import ServiceSettings
    from dualrank.online.service.serving import Started


@imports(
    "dualrank.online.service.service_settings:ServiceSettings",
    "dualrank.online.learner.learner:LearnerSettings",
)
def serve(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="A model directory, or a folder of versions."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            help="The folder for impressions, events and the click log; or a Redis (redis://…).",
        ),
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn from the events, in a process of its own.")
    ] = False,
    features: Annotated[
        Path | None,
        typer.Option(
            "--features", help="LETOR text or Parquet: features of documents named by requests."
        ),
    ] = None,
    explore: Annotated[
        str,
        typer.Option(
            "--explore",
            help="In this share of lists the first result changes places with another one, which "
            "`dualrank propensity` can use: 1% or 0.01.",
        ),
    ] = "0",
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="A generated world with simulated users, to watch; needs no MODEL."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The folder that --demo keeps; without it, a temporary one."),
        GENERATED,
    ] = None,
    *,
    settings: Annotated[ServiceSettings, Without("explore")],
    learner: Annotated[LearnerSettings, Without("seed")],
    typed: Typed,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="The seed of everything random; without it, exchanges differ at every start.",
            min=0,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Rank for users, collect what they click, and learn from it while it runs.

    POST /rank ranks candidates, POST /events takes clicks: an event that was acknowledged is on
    disk. They become a click log in the folder of events, which every other command reads. With
    --learn new versions go live where held-out clicks do not find them worse. A page at / shows it
    all; /docs says what requests look like. Ends when asked to (Ctrl-C), with nothing lost.

    Example: dualrank serve model/ --events events/ --learn

    Example: dualrank serve model/ --events events/ --learn --half-life 500000

    Example: dualrank serve model/ --events events/ --explore 1% --token-file token

    Example: dualrank serve --demo
    """
    settings = replace(settings, explore=as_share("explore", explore))
    names = [f.name for f in fields(learner) if f.name != "seed"]
    learning = {name: typed[name] for name in names if name in typed}
    if learning and (demo or not learn):
        option = f"--{next(iter(learning)).replace('_', '-')}"
        raise SettingsError(
            f"{option} is for a service that learns from its users: give --learn, without --demo"
        )
    if demo:
        if model is not None or events is not None or features is not None:
            raise SettingsError("--demo has a model, events and features of its own")
        _demo(settings, out, seed or 0, as_json)
        return
    if model is None or events is None:
        missing = "a MODEL" if model is None else "--events, the folder for what users do"
        raise SettingsError(f"serve needs {missing}; `dualrank serve --demo` shows it without")
    if out is not None:
        raise SettingsError("--out is the folder of --demo; what users do is kept in --events")

    from dualrank.online.service.serving import serve as serve_until_stopped
    from dualrank.online.service.structured_log import log_as_json

    log_as_json()

    def ready(started: Started) -> None:
        content = {
            "url": started.url,
            "version": started.version,
            "models": str(started.models),
            "events": started.events,
        }
        answer(
            as_json,
            content,
            f"{started.url}: version {started.version} of {started.models} answers, events go to "
            f"{started.events}",
        )

    with show_progress(None):  # its stderr is a log
        serve_until_stopped(
            model,
            events,
            settings,
            learn=learn,
            learning=learning,
            features=features,
            seed=seed,
            ready=ready,
        )


def _demo(settings: ServiceSettings, out: Path | None, seed: int, as_json: bool) -> None:
    """Show a service with simulated users, until somebody has seen enough."""
    from tempfile import TemporaryDirectory

    from dualrank.online.demo.demo import DemoStarted, run_demo

    def ready(started: DemoStarted) -> None:
        content = {
            "url": started.url,
            "folder": str(started.folder),
            "token": started.token,
        }
        answer(
            as_json,
            content,
            f"Watch it at {started.url}",
            f"To roll back there: {started.token}",
            "Ctrl-C ends it.",
        )

    with TemporaryDirectory(prefix="dualrank-demo-") as temporary:
        run_demo(out or Path(temporary), settings, seed=seed, ready=ready)
