"""`dualrank diagnose`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dualrank.cli.options import Without
from dualrank.cli.outputs import DIAGNOSIS
from dualrank.cli.sharded_input import open_shards
from dualrank.cli.terminal import (
    Json,
    Log,
    Seed,
    one_bar,
    open_features,
    open_log,
    print_json,
    result_console,
)
from dualrank.cli.wording import in_commands, in_options
from dualrank.data.log.log_options import LogOptions

STRICT_EXIT = 1
# Options that advice names.
NAMED = ("max-clicks", "max-client-share")


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
        DIAGNOSIS,
    ] = None,
    *,
    options: Annotated[LogOptions, Without("event_kinds")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say whether a log is good enough to learn from, and by which correction.

    Each point has a number, its meaning, and what to do; the verdict stands on top. With --features
    two small rankers are trained to see whether joint learning is right on this log. A log in
    shards has its features beside it; what does not add up over shards looks at as many as fit into
    1 GiB, and the verdict says at how many.

    Example: dualrank diagnose clicks.parquet --features data/train.txt --out diagnosis/
    """
    from dualrank.diagnostics.diagnosis import diagnose as ask
    from dualrank.report import diagnosis_sheet, write_diagnosis

    parts = open_shards(log, options)
    # Beside shards further features are refused, before they are read.
    dataset = None if features is None or parts is not None else open_features(features)
    click_log = open_log(log, dataset, options) if parts is None else parts
    with one_bar("diagnosing") as report:
        given = dataset if parts is None else features
        diagnosis = ask(click_log, given, seed=seed, progress=report)
    written = [] if out is None else write_diagnosis(diagnosis, out, Path(log).name)
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        typed = replace(
            diagnosis,
            reasons=tuple(in_commands(reason, log) for reason in diagnosis.reasons),
            points=tuple(
                replace(point, advice=in_commands(in_options(point.advice, NAMED), log))
                for point in diagnosis.points
            ),
        )
        diagnosis_sheet(typed, Path(log).name).show(result_console(), written)
    if strict and not diagnosis.is_fit:
        raise typer.Exit(STRICT_EXIT)
