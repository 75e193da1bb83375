"""`dualrank clicks fit`, `compare` and `relevance`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.options import imports
from dualrank.cli.outputs import NewFile
from dualrank.cli.sharded_input import open_shards
from dualrank.cli.terminal import Json, Seed, answer, one_bar
from dualrank.data.log.log_options import LogOptions
from dualrank.sentences import counted
from dualrank.storage import require_suffix

if TYPE_CHECKING:
    from dualrank.clicks.models.click_model import ClickModel
    from dualrank.clicks.models.em import EM, Prior
    from dualrank.data.log_parts import LogParts

Log = Annotated[
    Path,
    typer.Argument(
        help="The click log, as `dualrank reduce` wrote it (shards are read one by one), or "
        ".parquet, .csv, .jsonl with the columns' own names; no features needed."
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


@imports("dualrank.clicks.models.em:EM", "dualrank.clicks.models.em:Prior")
def fit(
    log: Log,
    model: ModelName = "ubm",
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Keep the model (.parquet or .json)."),
        NewFile("a click model"),
    ] = None,
    *,
    prior: Prior,
    em: EM,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit a click model, and print the parameters that all documents share.

    Log-likelihood (per session) and perplexity are of the log it was fitted on; `compare` judges
    models on sessions they have not seen.

    Example: dualrank clicks fit clicks.parquet --model ubm --out ubm.parquet
    """
    from dualrank.clicks.models.counting import pairs_shown
    from dualrank.report import parameter_tables

    if out is not None:
        require_suffix(out, "a click model", ".parquet", ".json")
    click_log, fitted = _fit(log, model, prior, em)
    if out is not None:
        fitted.save(out)
    state, perplexity = fitted.outline, fitted.perplexity(click_log)
    pairs = pairs_shown(click_log)
    result = {
        "model": fitted.name,
        "sessions": click_log.sessions,
        "pairs": pairs,
        "shared": {name: values.tolist() for name, values in state.shared.items()},
        "log_likelihood": fitted.log_likelihood(click_log) / click_log.sessions,
        "perplexity": perplexity.overall,
        "perplexity_per_rank": perplexity.per_rank.tolist(),
        "iterations": state.climb.iterations,
        "converged": state.climb.converged,
    }
    lines = [f"{fitted.title} ({fitted.name}) on {click_log}, {counted(pairs, 'documents')}"]
    if state.climb.iterations:
        end = "converged" if state.climb.converged else "stopped before it converged,"
        lines.append(f"{end} after {counted(state.climb.iterations, 'iterations')}")
    likelihood = f"log-likelihood per session {result['log_likelihood']:.4f}"
    lines.append(f"{likelihood}, perplexity {perplexity.overall:.4f}")
    written = None
    if out is not None:
        result["file"] = str(out)
        written = f"written to {out}"
    answer(as_json, result, *lines, *parameter_tables(state.shared), written)


@imports("dualrank.clicks.models.em:EM", "dualrank.clicks.models.em:Prior")
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
        Path | None,
        typer.Option("--figure", help="Draw the comparison (.svg or .png)."),
        NewFile(),
    ] = None,
    *,
    prior: Prior,
    em: EM,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit click models on a part of the log, and judge them on the rest.

    Log-likelihood is natural and per session. Perplexity (the mean over ranks, and rank by rank) is
    of clicks predicted before the session begins, or from the clicks above: 1 is certainty.

    Example: dualrank clicks compare clicks.parquet --figure models.svg
    """
    from dualrank.clicks.models.comparison import compare_models
    from dualrank.clicks.models.registry import MODELS, click_model
    from dualrank.report import (
        comparison_figure,
        comparison_table,
        rank_table,
        write_figure,
    )

    if figure is not None:
        require_suffix(figure, "a figure", ".svg", ".png")
    names = [name.strip() for name in models.split(",")] if models else list(MODELS)
    for name in names:
        click_model(name)
    train, test = _parts(log, held_out, seed)
    partial = any(part.log.lists.have_gaps.any() for parts in (train, test) for part in parts)
    unfit = [name for name in names if partial and not models and MODELS[name].follows]
    names = [name for name in names if name not in unfit]
    with one_bar("fitting") as report:
        scores = compare_models(train, test, names, prior=prior, em=em, progress=report)
    if figure is not None:
        write_figure(comparison_figure(scores), figure)
    unfinished = [score.model for score in scores if not score.converged]
    verdict = scores.verdict
    sizes = {"fitted_on": train.sessions, "judged_on": test.sessions}
    answer(
        as_json,
        {**sizes, "models": [asdict(score) for score in scores], "verdict": " ".join(verdict)},
        comparison_table(scores),
        "\nperplexity, by rank",
        rank_table(scores, given_clicks=False),
        "\nperplexity given clicks above, by rank",
        rank_table(scores, given_clicks=True),
        f"fitted on {counted(train.sessions, 'sessions')}, judged on {test.sessions:,}",
        f"not fitted, as lists have gaps: {', '.join(unfit)}" if unfit else None,
        *(f"{name} stopped before it converged; raise --max-iterations" for name in unfinished),
        None if figure is None else f"drawn in {figure}",
        "\n" + " ".join(filter(None, verdict)) if verdict else None,
    )


@imports("dualrank.clicks.models.em:EM", "dualrank.clicks.models.em:Prior")
def relevance(
    log: Annotated[Path, typer.Argument(help="A click log, or a model that `fit` wrote.")],
    out: Annotated[
        Path,
        typer.Option("--out", help="The table to write (.parquet or .csv)."),
        NewFile("a table of relevance"),
    ],
    model: ModelName = "dbn",
    min_sessions: Annotated[
        int, typer.Option(help="Leave out documents displayed in fewer sessions.", min=1)
    ] = 1,
    *,
    prior: Prior,
    em: EM,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write what a click model takes for the relevance of every displayed document.

    One row per query and document: query_id, doc_id, relevance, observations (sessions that
    displayed it), and low and high, the 95% interval; it runs from 0 to 1 where nothing is known.

    Example: dualrank clicks relevance clicks.parquet --model dbn --out relevance.csv
    """
    import pyarrow.compute as pc

    from dualrank.clicks.models.files import holds_click_model
    from dualrank.clicks.models.registry import load_click_model
    from dualrank.storage import write_tables

    require_suffix(out, "a table of relevance", ".parquet", ".csv")
    if holds_click_model(log):
        fitted = load_click_model(log)
    else:
        _, fitted = _fit(log, model, prior, em)
    tables = (
        table.filter(pc.greater_equal(table["observations"], min_sessions))
        for table in fitted.relevance_tables()
    )
    documents = write_tables(out, tables, "a table of relevance")
    answer(
        as_json,
        {"table": str(out), "model": fitted.name, "documents": documents},
        f"{out}: relevance of {counted(documents, 'documents')} by {fitted.title}",
    )


def _fit(log: Path, model: str, prior: Prior, em: EM) -> tuple[LogParts, ClickModel]:
    from dualrank.clicks.models.registry import click_model

    wanted = click_model(model, prior, em)
    parts = _read(log)
    with one_bar(f"fitting {model}"):
        return parts, wanted.fit(parts)


def _read(log: Path, **options: Any) -> LogParts:
    """A log in shards as these, any other in memory."""
    from dualrank.data.click_log import ClickLog
    from dualrank.data.log_parts import LogParts

    parts = open_shards(log, LogOptions(**options))
    if parts is not None:
        return parts
    with one_bar(f"reading {log.name}"):
        return LogParts.of(ClickLog.read(log, **options))


def _parts(log: Path, held_out: str, seed: int) -> tuple[LogParts, LogParts]:
    """What to fit on and what to judge by."""
    from dualrank.clicks.models.comparison import hold_out, hold_out_value

    try:
        share = float(held_out)
    except ValueError:
        pass
    else:
        return hold_out(_read(log), share, seed)
    column, equals, value = held_out.partition("=")
    if equals:
        return hold_out_value(_read(log, contexts=[column]), column, value)
    return _read(log), _read(Path(held_out))
