"""`dualrank train`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.event_option import Events, weights_of
from dualrank.cli.options import Without, imports
from dualrank.cli.outputs import MODEL
from dualrank.cli.terminal import (
    Json,
    Log,
    MaxGrade,
    answer,
    leaving_on_sigterm,
    one_bar,
    typed_command,
)
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import DataError, SettingsError
from dualrank.pace import Heard

if TYPE_CHECKING:
    from dualrank.cli.ranker_options import RankerChoice as RankerOptions
    from dualrank.learning.methods import METHODS
    from dualrank.propensity.propensity import Propensity
    from dualrank.settings import TrainingSettings

logger = logging.getLogger(__name__)


@imports(
    "dualrank.cli.ranker_options:RankerOptions",
    "dualrank.learning.methods:METHODS",
    "dualrank.settings:TrainingSettings",
)
def train(
    log: Log,
    out: Annotated[Path, typer.Option("--out", help="The model directory to write."), MODEL],
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            help="Parquet keyed by query_id and doc_id, or LETOR text with ids; a log in shards "
            "has its own.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help=f"How clicks are learned from: {', '.join(METHODS)}.")
    ] = "auto",
    *,
    rankers: RankerOptions,
    propensity: Annotated[
        Path | None, typer.Option(help="Propensity JSON, for --method ipw.")
    ] = None,
    click_model: Annotated[
        str | None,
        typer.Option(
            help="Whose relevance --method click-model learns from: ubm, dbn:attraction, …"
        ),
    ] = None,
    min_sessions: Annotated[
        int | None,
        typer.Option(help="Sessions a list needs for --method click-model (10).", min=1),
    ] = None,
    position_model: Annotated[
        str | None,
        typer.Option(
            help="What DLA learns about examination: variables, network, recurrent, or "
            "contextual, a curve by --context."
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="The loss of corrected labels: softmax, pairwise or lambdarank."),
    ] = None,
    event: Events = None,
    validation: Annotated[
        str, typer.Option(help="The share of queries held out, or judged data with grades.")
    ] = "0.1",
    scaling: Annotated[str, typer.Option(help="standard, minmax, log or none.")] = "standard",
    settings: TrainingSettings,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard event files next to the model.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--fresh",
            help="Go on from the checkpoint of an interrupted run, or start anew.",
        ),
    ] = True,
    twin: Annotated[
        bool, typer.Option(help="Train a ranker without correction too, and compare.")
    ] = True,
    remember: Annotated[
        bool,
        typer.Option("--remember", help="Keep lists of the log with the model, for `update`."),
    ] = False,
    diagnosis: Annotated[
        bool, typer.Option(help="Say in the report what the log can be trusted with.")
    ] = True,
    reading: Annotated[LogOptions, Without("event_kinds")],
    max_grade: MaxGrade = None,
    as_json: Json = False,
) -> None:
    """Train a ranker from a click log.

    A run that was interrupted goes on where its last checkpoint was, with the same result; SIGTERM
    saves one and leaves with 143. The SVM takes all clicks at once: steps and rates are not for it.
    Trees take all lists at every step, and features as they are, some of which may be missing.
    Next to the model stand report.html and, in twin/, the ranker without correction.
    A log in shards, as `dualrank reduce --features F --shards N` writes it, need not fit into
    memory: lists are drawn from where they lie on disk, and under torchrun each worker has its own
    shards.

    Example: dualrank train clicks.parquet --features data/train.txt --out model/

    Example: dualrank train clicks.parquet --features data/train.txt --method dla --out model/

    Example: dualrank train log.parquet --features F --event click=1 --event purchase=5 --out model/

    Example: dualrank train shards/ --out model/

    Example: torchrun --nproc-per-node 2 -m dualrank train clicks.parquet --features F --out model/
    """
    from dualrank.propensity.propensity import Propensity
    from dualrank.workflow import train as run

    given = None if propensity is None else Propensity.read(propensity)
    trained = run(
        log,
        features,
        out,
        method=method,
        ranker=rankers.settings(),
        settings=settings,
        propensity=given,
        position_model=position_model,
        context=_curve_context(position_model, reading.contexts, given),
        click_model=click_model,
        min_sessions=min_sessions,
        loss=loss,
        events=weights_of(event),
        validation=_share_or_file(validation),
        scaling=scaling,
        reading=reading,
        compare=twin,
        remember=remember,
        diagnosis=diagnosis,
        tensorboard=tensorboard,
        resume=resume,
        max_grade=max_grade,
        bars=_bars,
        command=typed_command(),
    )
    if not trained.is_written:
        return
    training, curve = trained.model.training, trained.model.propensity
    history: dict[str, Any] = training["history"]
    learned = None if curve is None else curve.examination.tolist()
    found = {name: training.get(name) for name in ("twin", "auto")}
    found["warnings"] = training.get("warnings", [])
    lines = [f"{out}: {method} on {trained.log}"]
    if history["best_value"] is not None:
        best = f"{history['best_value']:.4f}, {history['measure']}{_not_comparable(training)}"
        lines.append(f"kept         the ranker of step {history['best_step']}: {best}")
    if learned is not None:
        lines.append("examination  " + "  ".join(f"{value:.3f}" for value in learned))
    lines += [" ".join(trained.verdict), f"report       {out / 'report.html'}"]
    answer(as_json, {"model": str(out), "examination": learned, **history, **found}, *lines)


def _not_comparable(training: dict[str, Any]) -> str:
    """What a value on held-out clicks is no answer to; the verdict is."""
    if isinstance(training["validation"], str):
        return ""
    part = training.get("auto", {}).get("weights")
    of = f"of {next(iter(part))}, the largest part; " if part else ""
    return f" ({of}comparable between steps of one training, not between methods)"


@contextmanager
def _bars(work: str) -> Iterator[Heard]:
    """A bar for a piece of work; training can be left at SIGTERM with its state saved."""
    with one_bar(work) as bar:
        if not work.startswith("training"):
            yield bar
            return
        with leaving_on_sigterm(bar) as report:
            yield report


def _curve_context(
    model: str | None, contexts: tuple[str, ...], given: Propensity | None
) -> str | None:
    """The column that gives each of its values a curve, learned or given."""
    if model != "contextual":
        column = None if given is None else given.context
        if column is not None and column not in contexts:
            logger.warning("curves by %s are not used without --context %s", column, column)
            return None
        return column
    if len(contexts) != 1:
        raise SettingsError(
            "--position-model contextual takes one --context, the column of the log whose values "
            "have curves of their own"
        )
    return contexts[0]


def _share_or_file(text: str) -> Path | float:
    try:
        return float(text)
    except ValueError:
        pass
    path = Path(text)
    if not path.exists():
        raise DataError(f"--validation takes a share such as 0.1 or judged data; no file {text!r}")
    return path
