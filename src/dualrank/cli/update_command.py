"""`dualrank update`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.options import Typed, Without, imports
from dualrank.cli.outputs import UPDATED
from dualrank.cli.terminal import Json, Log, answer, one_bar, open_features, open_log
from dualrank.data.log.log_options import LogOptions

if TYPE_CHECKING:
    from dualrank.settings import TrainingSettings


@imports("dualrank.settings:TrainingSettings")
def update(
    model: Annotated[Path, typer.Argument(help="A model directory.")],
    log: Log,
    features: Annotated[
        Path,
        typer.Option("--features", help="Parquet keyed by query_id and doc_id, or LETOR text."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The model directory to write."), UPDATED],
    half_life: Annotated[
        float | None,
        typer.Option(help="After so many new sessions an older one counts half; else none fades."),
    ] = None,
    changed: Annotated[
        bool,
        typer.Option(
            "--changed",
            help="Users have changed their habits: older clicks say nothing about position.",
        ),
    ] = False,
    memory: Annotated[
        int, typer.Option(help="How many lists are remembered for the next update.", min=0)
    ] = 20_000,
    method: Annotated[
        str | None,
        typer.Option(help="likelihood, dla, ipw or naive; without it, as the model was trained."),
    ] = None,
    propensity: Annotated[
        Path | None, typer.Option(help="Propensity JSON, for --method ipw.")
    ] = None,
    validation: Annotated[
        float, typer.Option(help="The share of new queries whose clicks are compared, not learned.")
    ] = 0.1,
    *,
    settings: Annotated[TrainingSettings, Without("metric")],
    reading: Annotated[LogOptions, Without("event_kinds", "contexts")],
    typed: Typed,
    as_json: Json = False,
) -> None:
    """Go on with a model from new clicks, such as those of a day.

    Ranker, curve and optimisers go on from where they were; lists that the model remembers are
    learned from once more, so that older queries are not forgotten (`train --remember` keeps the
    first of them). Settings that are not given are those of the training.

    Example: dualrank update model/ day-2.parquet --features F --out model-2/

    Example: dualrank update model/ day-2.parquet --features F --half-life 500000 --out model-2/
    """
    from dataclasses import fields

    from dualrank.learning.model import Model
    from dualrank.learning.update import said_of
    from dualrank.propensity.propensity import Propensity
    from dualrank.storage import whole_folder

    before = Model.load(model)
    dataset = open_features(features, before)
    clicks = open_log(log, dataset, reading)
    given = {f.name: typed[f.name] for f in fields(settings) if f.name in typed}
    with one_bar("learning") as progress:
        after = before.update(
            clicks,
            dataset,
            half_life=half_life,
            changed=changed,
            memory=memory,
            validation=validation,
            progress=progress,
            method=method,
            propensity=None if propensity is None else Propensity.read(propensity),
            **given,
        )
    with whole_folder(out) as folder:
        after.save(folder)
    found = after.training["update"]
    curve = after.propensity
    learned = None if curve is None else curve.examination.tolist()
    lines = [f"{out}: {found['method']}, update {found['number']}", *said_of(found)]
    if learned is not None:
        lines.append("examination  " + "  ".join(f"{value:.3f}" for value in learned))
    remembers = f"{found['remembers']:,} lists are remembered for the next update"
    answer(as_json, {"model": str(out), "examination": learned, **found}, *lines, remembers)
