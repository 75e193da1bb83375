"""`dualrank diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualrank.cli.log_options import (
    Columns,
    Contexts,
    FirstPosition,
    Log,
    MaxBadShare,
    MaxClicks,
    MaxClientShare,
    open_features,
    open_log,
)
from dualrank.cli.terminal import Json, Seed, one_bar, print_json, result_console

STRICT_EXIT = 1


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(diagnose)


def diagnose(
    log: Log,
    features: Annotated[
        Path | None,
        typer.Option("--features", help="LETOR text or Parquet; tells about learning."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 1 where a point failed, or no correction is fit."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The directory for diagnosis.json and diagnosis.html."),
    ] = None,
    column: Columns = None,
    context: Contexts = None,
    first_position: FirstPosition = 1,
    max_bad_share: MaxBadShare = 0.0,
    max_clicks: MaxClicks = None,
    max_client_share: MaxClientShare = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say whether a log is good enough to learn from, and by which correction.

    Each point has a number, its meaning, and what to do; the verdict stands on top. With --features
    two small rankers are trained to see whether joint learning is right on this log.

    Example: dualrank diagnose clicks.parquet --features data/train.txt --out diagnosis/
    """
    from dualrank.diagnostics.diagnosis import diagnose as ask
    from dualrank.report import diagnosis_sheet, write_diagnosis

    dataset = None if features is None else open_features(features)
    click_log = open_log(
        log,
        dataset,
        columns=column,
        contexts=context,
        first_position=first_position,
        max_bad_share=max_bad_share,
        max_clicks=max_clicks,
        max_client_share=max_client_share,
    )
    with one_bar("diagnosing") as report:
        diagnosis = ask(click_log, dataset, seed=seed, progress=report)
    written = [] if out is None else write_diagnosis(diagnosis, out, Path(log).name)
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        diagnosis_sheet(diagnosis, Path(log).name).show(result_console(), written)
    if strict and not diagnosis.is_fit:
        raise typer.Exit(STRICT_EXIT)
