"""`dualrank estimate`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.event_option import Events, weights_of
from dualrank.cli.options import Without
from dualrank.cli.outputs import ESTIMATE
from dualrank.cli.terminal import (
    Json,
    Log,
    Seed,
    one_bar,
    open_features,
    open_log,
    print_json,
    result_console,
    typed_command,
)
from dualrank.cli.wording import in_options
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import absent

if TYPE_CHECKING:
    from dualrank.learning.model import Model

# Options that sentences of the library name.
NAMED = ("only-displayed", "propensity")
LOGGED = Path("logged")


def estimate(
    log: Log,
    model: Annotated[
        Path,
        typer.Option("--model", help="The new ranker: a model directory, or a run of any engine."),
    ],
    features: Annotated[
        Path, typer.Option("--features", help="LETOR text or Parquet, of all that may be shown.")
    ],
    against: Annotated[
        Path,
        typer.Option(
            "--against", help="What it is compared with: a model, a run, or what was logged."
        ),
    ] = LOGGED,
    propensity: Annotated[
        str | None,
        typer.Option(
            "--propensity",
            metavar="FILE|dla|harvested",
            help="Examination by position: a JSON file, learned (dla), or harvested from documents "
            "that the log shows at several positions. Without it, harvested where the log allows.",
        ),
    ] = None,
    event: Events = None,
    only_displayed: Annotated[
        bool,
        typer.Option(
            "--only-displayed",
            help="Let a ranker order what was displayed for the query, and nothing else.",
        ),
    ] = False,
    resamples: Annotated[int, typer.Option(help="Of queries, for the intervals.", min=2)] = 1_000,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The directory for report.html, estimate.json and figures."),
        ESTIMATE,
    ] = None,
    *,
    options: Annotated[LogOptions, Without("event_kinds")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say from a log what a new ranker would earn, before any user sees it.

    Clicks per session, and three metrics that look at where clicks fall, by several estimators,
    each with a 95% interval over queries; the verdict stands on top, and what the log cannot tell
    is refused. A ranker that was trained on this log is judged on the queries that it held out.

    Example: dualrank estimate clicks.parquet --model new/ --features data/train.txt --out decision/

    Example: dualrank estimate log.parquet --model new.run --against old.run --features F

    Example: dualrank estimate log.parquet --model new/ --features F --event purchase=5
    """
    from dualrank.decisions.curve_choice import require_known
    from dualrank.decisions.estimate_rankers import estimate as ask
    from dualrank.report import estimate_sheet, show_estimate, write_estimate

    weights = weights_of(event)
    if model == LOGGED:
        raise SettingsError(
            "--model logged: what was logged is the old ranking; give a model directory or a run"
        )
    require_known(propensity)
    new, old = _model(model), _model(against)
    contexts = (*options.contexts, *_context_of(propensity, new))
    kinds = tuple(weights or ())
    options = replace(options, contexts=tuple(dict.fromkeys(contexts)), event_kinds=kinds)
    dataset = open_features(features, new or old)
    click_log = open_log(log, dataset, options)
    with one_bar("estimating") as report:
        found = ask(
            click_log,
            model,
            dataset,
            against="logged" if against == LOGGED else against,
            propensity=propensity,
            events=weights,
            only_displayed=only_displayed,
            resamples=resamples,
            seed=seed,
            progress=report,
        )
    sheet = estimate_sheet(
        found,
        settings={
            "data": Path(log).name,
            "new_ranker": str(model),
            "old_ranker": str(against),
            "features": str(features),
            "only_what_was_displayed": only_displayed,
            "resamples": resamples,
            "seed": seed,
        },
        command=typed_command(),
        typed=partial(in_options, options=NAMED),
    )
    written = [] if out is None else write_estimate(found, sheet, out)
    if as_json:
        print_json(found.to_dict())
        return
    show_estimate(sheet, result_console(), written)


def _model(ranking: Path) -> Model | None:
    """The model of a directory; runs and what was logged have none."""
    from dualrank.data.runs import is_run
    from dualrank.learning.model import Model

    if ranking == LOGGED:
        return None
    if not ranking.exists():
        raise DataError(absent(ranking, "file or model directory"))
    return None if is_run(ranking) else Model.load(ranking)


def _context_of(propensity: str | None, model: Model | None) -> tuple[str, ...]:
    """The column whose values have curves of their own, which the log must be read with."""
    from dualrank.propensity.propensity import Propensity

    curve = None
    if propensity in (None, "dla"):
        curve = None if model is None else model.propensity
    elif propensity != "harvested" and Path(propensity).is_file():
        curve = Propensity.read(propensity)
    return () if curve is None or curve.context is None else (curve.context,)
