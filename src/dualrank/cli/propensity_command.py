"""`dualrank propensity`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dualrank.cli.options import Without, imports
from dualrank.cli.outputs import CURVES
from dualrank.cli.sharded_input import open_shards
from dualrank.cli.terminal import Json, Log, Seed, answer, one_bar, open_features, open_log
from dualrank.cli.wording import in_options
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import DataError

if TYPE_CHECKING:
    from dualrank.rankers.network import DNN


@imports("dualrank.rankers.network:DNN")
def propensity(
    log: Log,
    features: Annotated[
        Path | None,
        typer.Option("--features", help="LETOR text or Parquet, for estimators that train."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Estimators, separated by commas: click-through, randomisation, pair-swaps, "
            "harvest-pivot, harvest-adjacent, harvest-all-pairs, pbm, regression-em, dla, "
            "likelihood, grounded. "
            "Without it, all that the log allows."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The directory for a file each, and a figure."),
        CURVES,
    ] = None,
    ranker: Annotated[
        Literal["linear", "dnn"] | None,
        typer.Option(
            help="What scores documents; by default linear for regression-em, dnn for the others."
        ),
    ] = None,
    *,
    network: Annotated[DNN, Without("elu_output", "precision", "activation")],
    over: Annotated[
        Literal["auto", "queries", "sessions"],
        typer.Option(help="What intervals resample; auto: queries, if there are ten."),
    ] = "auto",
    resamples: Annotated[int, typer.Option(help="Resamples for intervals.", min=0)] = 400,
    refits: Annotated[
        int, typer.Option(help="How often dla is trained again for its interval.", min=0)
    ] = 5,
    steps: Annotated[
        int, typer.Option(help="Training steps of dla, likelihood and grounded.", min=1)
    ] = 3_000,
    options: Annotated[LogOptions, Without("contexts", "event_kinds")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate by every method that the log allows how likely each position is examined.

    Naming randomisation says that lists were shuffled. Each file of --out can be given to
    dualrank train --method ipw --propensity FILE. A log in shards is counted one shard after the
    other; estimators that train look at as many whole shards as fit into 1 GiB, and say so.

    Example: dualrank propensity clicks.parquet --features data/train.txt --out propensities/
    """
    import json

    from dualrank.data.log_parts import LogParts
    from dualrank.learning.estimates import estimate_propensities
    from dualrank.rankers.network import Linear
    from dualrank.report import estimates_notes, estimates_table, write_estimates
    from dualrank.settings import TrainingSettings

    parts = open_shards(log, options)
    # Beside shards further features are refused, before they are read.
    dataset = None if features is None or parts is not None else open_features(features)
    click_log = open_log(log, dataset, options) if parts is None else parts
    rankers = {None: None, "dnn": network, "linear": Linear()}
    with one_bar("estimating") as report:
        estimates = estimate_propensities(
            click_log,
            features if parts is not None else dataset,
            methods=None if methods is None else [m.strip() for m in methods.split(",")],
            ranker=rankers[ranker],
            over=over,
            resamples=resamples,
            refits=refits,
            settings=TrainingSettings(steps=steps, seed=seed),
            seed=seed,
            progress=report,
        )
    if not estimates.found:
        method, why = next(iter(estimates.refused.items()))
        raise DataError(f"{log}: {method} cannot be estimated: {why}")
    written = [] if out is None else write_estimates(estimates, out)
    found = {name: json.loads(each.to_json()) for name, each in estimates.found.items()}
    notes = estimates_notes(estimates, LogParts.of(click_log).depth)
    answer(
        as_json,
        {"estimates": found, "refused": estimates.refused},
        estimates_table(estimates),
        "",
        *(in_options(note, ["refits"]) for note in notes),
        None if out is None else f"{out}: {', '.join(path.name for path in written)}",
    )
