"""`dualrank clicks fit`, `compare` and `relevance`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.terminal import Json, Seed, one_bar, print_json, result_console
from dualrank.errors import SettingsError

if TYPE_CHECKING:
    from dualrank.clicks.models.click_model import ClickModel
    from dualrank.data.click_log import ClickLog

Log = Annotated[
    Path,
    typer.Argument(
        help="The click log, as `dualrank reduce` wrote it, or .parquet, .csv, .jsonl with the "
        "columns' own names; no features needed."
    ),
]
ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        help="random-ctr, rank-ctr, document-ctr, pbm, pbm-trust, cascade, dcm, dcm-em, ccm, ubm, "
        "sdbn, sdbn-em or dbn.",
    ),
]
PriorStrength = Annotated[
    float,
    typer.Option(help="How many trials the prior of a document counts as.", min=0.0),
]
MaxIterations = Annotated[int, typer.Option(help="At most so many iterations of EM.", min=1)]
Tolerance = Annotated[
    float, typer.Option(help="EM stops when less is to be gained (nats of the whole log).", min=0.0)
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    clicks = typer.Typer(
        help="Click models: what users look at and like, read off a log.", no_args_is_help=True
    )
    clicks.command()(fit)
    clicks.command()(compare)
    clicks.command()(relevance)
    app.add_typer(clicks, name="clicks")


def fit(
    log: Log,
    model: ModelName = "ubm",
    out: Annotated[
        Path | None, typer.Option("--out", help="Keep the model (.parquet or .json).")
    ] = None,
    prior_strength: PriorStrength = 2.0,
    max_iterations: MaxIterations = 5_000,
    tolerance: Tolerance = 0.01,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit a click model, and print the parameters that all documents share.

    Log-likelihood (per session) and perplexity are of the log it was fitted on; `compare` judges
    models on sessions they have not seen.

    Example: dualrank clicks fit clicks.parquet --model ubm --out ubm.parquet
    """
    if out is not None and out.suffix not in (".parquet", ".json"):
        raise SettingsError(f"{out}: a click model is written as .parquet or .json")
    click_log, fitted = _fit(log, model, prior_strength, max_iterations, tolerance)
    if out is not None:
        fitted.save(out)
    state, perplexity = fitted.fitted, fitted.perplexity(click_log)
    result = {
        "model": fitted.name,
        "sessions": state.sessions,
        "pairs": int((state.observations > 0).sum()),
        "shared": {name: values.tolist() for name, values in state.shared.items()},
        "log_likelihood": fitted.log_likelihood(click_log) / click_log.sessions,
        "perplexity": perplexity.overall,
        "perplexity_per_rank": perplexity.per_rank.tolist(),
        "iterations": state.climb.iterations,
        "converged": state.climb.converged,
    }
    if as_json:
        print_json(result if out is None else {**result, "file": str(out)})
        return
    typer.echo(f"{fitted.title} ({fitted.name}) on {click_log}, {result['pairs']} documents")
    if state.climb.iterations:
        end = "converged" if state.climb.converged else "stopped before it converged,"
        typer.echo(f"{end} after {state.climb.iterations} iterations")
    typer.echo(
        f"log-likelihood per session {result['log_likelihood']:.4f}, "
        f"perplexity {perplexity.overall:.4f}"
    )
    for name, values in state.shared.items():
        for number, row in enumerate(values.reshape(-1, values.shape[-1]), start=1):
            # By rank and last click there are as many values as ranks above, and one for none.
            shown = row if values.ndim == 1 else row[:number]
            typer.echo(f"{name:<22}  " + "  ".join(f"{value:.3f}" for value in shown))
    if out is not None:
        typer.echo(f"written to {out}")


def compare(
    log: Log,
    held_out: Annotated[
        str,
        typer.Option(
            help="The sessions to judge by: a share of them, COLUMN=VALUE, or another log."
        ),
    ] = "0.25",
    models: Annotated[
        str, typer.Option(help="Names separated by commas; without it, all models.")
    ] = "",
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw the comparison (.svg or .png).")
    ] = None,
    prior_strength: PriorStrength = 2.0,
    max_iterations: MaxIterations = 5_000,
    tolerance: Tolerance = 0.01,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit click models on a part of the log, and judge them on the rest.

    Log-likelihood is natural and per session. Perplexity (the mean over ranks, and rank by rank) is
    of clicks predicted before the session begins, or from the clicks above: 1 is certainty.

    Example: dualrank clicks compare clicks.parquet --figure models.svg
    """
    from dualrank.clicks.models.comparison import compare_models
    from dualrank.clicks.models.em import EM, Prior
    from dualrank.clicks.models.registry import MODELS, click_model
    from dualrank.report import comparison_figure, comparison_table, rank_table, write_figure

    if figure is not None and figure.suffix not in (".svg", ".png"):
        raise SettingsError(f"{figure}: a figure is written as .svg or .png")
    names = [name.strip() for name in models.split(",")] if models else list(MODELS)
    for name in names:
        click_model(name)
    with one_bar(f"reading {log.name}"):
        train, test = _parts(log, held_out, seed)
    with one_bar("fitting") as report:
        scores = compare_models(
            train,
            test,
            names,
            prior=Prior(prior_strength),
            em=EM(max_iterations, tolerance),
            progress=report,
        )
    if figure is not None:
        write_figure(comparison_figure(scores), figure)
    if as_json:
        sizes = {"fitted_on": train.sessions, "judged_on": test.sessions}
        print_json({**sizes, "models": [asdict(score) for score in scores]})
        return
    console = result_console()
    console.print(comparison_table(scores).rich(console.width))
    for given, heading in ((False, "perplexity"), (True, "perplexity given clicks above")):
        console.print(f"\n{heading}, by rank")
        console.print(rank_table(scores, given_clicks=given).rich(console.width))
    typer.echo(f"fitted on {train.sessions} sessions, judged on {test.sessions}")
    for score in scores:
        if not score.converged:
            typer.echo(f"{score.model} stopped before it converged; raise --max-iterations")
    if figure is not None:
        typer.echo(f"drawn in {figure}")


def relevance(
    log: Annotated[Path, typer.Argument(help="A click log, or a model that `fit` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="The table to write (.parquet or .csv).")],
    model: ModelName = "dbn",
    min_sessions: Annotated[
        int, typer.Option(help="Leave out documents displayed in fewer sessions.", min=1)
    ] = 1,
    prior_strength: PriorStrength = 2.0,
    max_iterations: MaxIterations = 5_000,
    tolerance: Tolerance = 0.01,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write what a click model takes for the relevance of every displayed document.

    One row per query and document: query_id, doc_id, relevance, observations (sessions that
    displayed it), and low and high, the 95% interval; it runs from 0 to 1 where nothing is known.

    Example: dualrank clicks relevance clicks.parquet --model dbn --out relevance.csv
    """
    import pyarrow.compute as pc
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    from dualrank.clicks.models.files import holds_click_model
    from dualrank.clicks.models.registry import load_click_model
    from dualrank.storage import atomic_file

    if out.suffix not in (".parquet", ".csv"):
        raise SettingsError(f"{out}: a table of relevance is written as .parquet or .csv")
    if holds_click_model(log):
        fitted = load_click_model(log)
    else:
        _, fitted = _fit(log, model, prior_strength, max_iterations, tolerance)
    table = fitted.relevance()
    table = table.filter(pc.greater_equal(table["observations"], min_sessions))
    with atomic_file(out) as file:
        if out.suffix == ".csv":
            csv.write_csv(table, file)
        else:
            pq.write_table(table, file, compression="zstd")
    if as_json:
        print_json({"table": str(out), "model": fitted.name, "documents": table.num_rows})
        return
    typer.echo(f"{out}: relevance of {table.num_rows} documents by {fitted.title}")


def _fit(
    log: Path, model: str, prior_strength: float, max_iterations: int, tolerance: float
) -> tuple[ClickLog, ClickModel]:
    from dualrank.clicks.models.em import EM, Prior
    from dualrank.clicks.models.registry import click_model
    from dualrank.data.click_log import ClickLog

    wanted = click_model(model, Prior(prior_strength), EM(max_iterations, tolerance))
    with one_bar(f"reading {log.name}"):
        click_log = ClickLog.read(log)
    with one_bar(f"fitting {model}"):
        return click_log, wanted.fit(click_log)


def _parts(log: Path, held_out: str, seed: int) -> tuple[ClickLog, ClickLog]:
    """What to fit on and what to judge by."""
    from dualrank.clicks.models.comparison import hold_out
    from dualrank.data.click_log import ClickLog

    try:
        share = float(held_out)
    except ValueError:
        pass
    else:
        return hold_out(ClickLog.read(log), share, seed)
    column, equals, value = held_out.partition("=")
    if not equals:
        return ClickLog.read(log), ClickLog.read(Path(held_out))
    whole = ClickLog.read(log, contexts=[column])
    names, codes = whole.column(column).names, whole.column(column).codes
    if value not in names or len(names) < 2:
        raise SettingsError(
            f"--held-out {held_out}: column {column!r} holds {', '.join(names)}; it must hold "
            f"{value!r} and another value"
        )
    import numpy as np

    held = codes == names.index(value)
    return whole.take_rows(np.flatnonzero(~held)), whole.take_rows(np.flatnonzero(held))
