"""`dualrank train`."""

from __future__ import annotations

import logging
import shutil
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.terminal import (
    Json,
    Log,
    MaxGrade,
    Seed,
    layer_sizes,
    leaving_on_sigterm,
    one_bar,
    open_features,
    open_log,
    print_json,
)
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import DataError, SettingsError

if TYPE_CHECKING:
    from dualrank.learning.loop import Record
    from dualrank.learning.workers import Team
    from dualrank.propensity.propensity import Propensity


logger = logging.getLogger(__name__)


class MethodName(StrEnum):
    """How clicks are corrected."""

    auto = "auto"
    dla = "dla"
    ipw = "ipw"
    naive = "naive"
    click_model = "click-model"


class PositionModel(StrEnum):
    """What dual learning learns about examination."""

    variables = "variables"
    network = "network"
    recurrent = "recurrent"
    contextual = "contextual"


class RankerName(StrEnum):
    """What scores documents."""

    dnn = "dnn"
    linear = "linear"
    svm = "svm"


def train(
    log: Log,
    features: Annotated[
        Path,
        typer.Option(
            "--features", help="Parquet keyed by query_id and doc_id, or LETOR text with ids."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The model directory to write.")],
    method: Annotated[MethodName, typer.Option(help="The correction.")] = MethodName.dla,
    ranker: Annotated[RankerName, typer.Option(help="The ranker.")] = RankerName.dnn,
    hidden: Annotated[str, typer.Option(help="Sizes of the DNN's hidden layers.")] = "256,128",
    C: Annotated[float, typer.Option("--C", help="The SVM's weight of errors.")] = 100.0,
    propensity: Annotated[
        Path | None, typer.Option(help="Propensity JSON, for --method ipw.")
    ] = None,
    click_model: Annotated[
        str | None,
        typer.Option(help="Whose relevance --method click-model learns from: dbn, ubm, …"),
    ] = None,
    min_sessions: Annotated[
        int | None,
        typer.Option(help="Sessions a list needs for --method click-model (10).", min=1),
    ] = None,
    position_model: Annotated[
        PositionModel | None,
        typer.Option(help="What DLA learns about examination; contextual: a curve by --context."),
    ] = None,
    validation: Annotated[
        str, typer.Option(help="The share of queries held out, or judged data with grades.")
    ] = "0.1",
    metric: Annotated[
        str, typer.Option(help="Keeps the best ranker, where --validation is judged.")
    ] = "ndcg@10",
    scaling: Annotated[str, typer.Option(help="standard, minmax, log or none.")] = "standard",
    steps: Annotated[int, typer.Option(help="Training steps.", min=1)] = 3_000,
    batch_size: Annotated[int, typer.Option(help="Lists per step.", min=1)] = 256,
    optimizer: Annotated[str, typer.Option(help="sgd or adagrad.")] = "sgd",
    schedule: Annotated[str, typer.Option(help="Rates: linear or constant.")] = "linear",
    normalisation: Annotated[
        str, typer.Option(help="The loss is divided by: sessions or clicks.")
    ] = "sessions",
    learning_rate: Annotated[float, typer.Option(help="The ranker's rate.")] = 0.2,
    propensity_rate: Annotated[float, typer.Option(help="The propensity model's rate.")] = 1.0,
    weight_decay: Annotated[float, typer.Option(help="L2 regularisation.")] = 0.0,
    max_weight: Annotated[float, typer.Option(help="Clips inverse weights.")] = 1_000.0,
    gradient_clip: Annotated[float, typer.Option(help="Clips gradients.")] = 5.0,
    elu_output: Annotated[
        bool, typer.Option("--elu-output", help="The DNN as the paper prints it.")
    ] = False,
    precision: Annotated[
        str, typer.Option(help="Of matrix products in training: float32 or bfloat16.")
    ] = "float32",
    threads: Annotated[int, typer.Option(help="Threads of a training step.", min=1)] = 1,
    device: Annotated[
        str, typer.Option(help="auto (a GPU where there is one), cpu, cuda or cuda:n.")
    ] = "auto",
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard event files beside the model.")
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
    diagnosis: Annotated[
        bool, typer.Option(help="Say in the report what the log can be trusted with.")
    ] = True,
    *,
    log_options: LogOptions,
    max_grade: MaxGrade = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a ranker from a click log.

    A run that was interrupted goes on where its last checkpoint was, with the same result; SIGTERM
    saves one and leaves with 143. The SVM takes all clicks at once: steps, rates and validation are
    not for it. Beside the model stand report.html and, in twin/, the ranker without correction.

    Example: dualrank train clicks.parquet --features data/train.txt --out model/

    Example: dualrank train clicks.parquet --features data/train.txt --method auto --out model/

    Example: torchrun --nproc-per-node 2 -m dualrank train clicks.parquet --features F --out model/
    """
    from dualrank.diagnostics.diagnosis import diagnose
    from dualrank.learning.device import choose_device
    from dualrank.learning.fit import fit
    from dualrank.learning.options import Options
    from dualrank.learning.tensorboard import event_files, require_tensorboard
    from dualrank.learning.twin import TWIN, fit_twin
    from dualrank.learning.workers import team_of_torchrun
    from dualrank.propensity.propensity import Propensity
    from dualrank.rankers.network import DNN, Linear
    from dualrank.rankers.ranking_svm import RankingSVM
    from dualrank.report import training_verdict, write_training_report
    from dualrank.settings import TrainingSettings
    from dualrank.storage import write_text

    settings = TrainingSettings(
        steps=steps,
        batch_size=batch_size,
        optimizer=optimizer,  # type: ignore[arg-type]
        learning_rate=learning_rate,
        propensity_rate=propensity_rate,
        schedule=schedule,  # type: ignore[arg-type]
        normalisation=normalisation,  # type: ignore[arg-type]
        weight_decay=weight_decay,
        max_weight=max_weight,
        gradient_clip=gradient_clip,
        threads=threads,
        device=device,
        metric=metric,
        seed=seed,
    )
    choose_device(device)
    rankers: dict[RankerName, DNN | Linear | RankingSVM] = {
        RankerName.dnn: DNN(layer_sizes(hidden), elu_output, precision),  # type: ignore[arg-type]
        RankerName.linear: Linear(),
        RankerName.svm: RankingSVM(C=C, seed=seed),
    }
    given = None if propensity is None else Propensity.read(propensity)
    share = _share_or_file(validation)
    options = Options(
        method.value,
        rankers[ranker],
        None if position_model is None else position_model.value,
        _curve_context(position_model, log_options.contexts, given),
        click_model,
        min_sessions,
    )
    options.check(given, 0.1 if isinstance(share, Path) else share, scaling)
    if tensorboard:
        require_tensorboard()
    out.mkdir(parents=True, exist_ok=True)
    if not resume:
        _remove_checkpoints(out)
    dataset = open_features(features)
    click_log = open_log(log, dataset, log_options)
    same: dict[str, Any] = {
        "ranker": options.ranker,
        "validation": share
        if isinstance(share, float)
        else open_features(share, dataset.feature_count, max_grade, dataset.feature_names),
        "scaling": scaling,
        "settings": settings,
    }

    def events(team: Team, name: str) -> AbstractContextManager[Record | None]:
        return event_files(out / "tensorboard" / name if tensorboard and team.leads else None)

    with team_of_torchrun() as team:
        with (
            one_bar("training") as bar,
            leaving_on_sigterm(bar) as report,
            events(team, "model") as record,
        ):
            model = fit(
                click_log,
                dataset,
                method=method.value,
                propensity=given,
                click_model=click_model,
                min_sessions=min_sessions,
                position_model=options.position_model,  # type: ignore[arg-type]
                context=options.context,
                checkpoint=out / "checkpoint.safetensors",
                progress=report,
                record=record,
                **same,
            )
        if twin and method.value not in ("naive", "auto"):
            with (
                one_bar("training the naive twin") as bar,
                leaving_on_sigterm(bar) as report,
                events(team, TWIN) as record,
            ):
                model, naive = fit_twin(
                    model,
                    click_log,
                    dataset,
                    checkpoint=out / "checkpoint-twin.safetensors",
                    progress=report,
                    record=record,
                    **same,
                )
            if team.leads:
                naive.save(out / TWIN)
    if not team.leads:
        return
    if not (twin and method.value not in ("naive", "auto")):
        shutil.rmtree(out / TWIN, ignore_errors=True)
    (out / "diagnosis.json").unlink(missing_ok=True)
    model.save(out)
    diagnosed = None
    if diagnosis:
        with one_bar("diagnosing the log") as report:
            diagnosed = diagnose(click_log, dataset, seed=seed, progress=report)
        write_text(out / "diagnosis.json", diagnosed.to_json())
    write_training_report(model, out / "report.html", diagnosed)
    _remove_checkpoints(out)
    history = model.training.get("history", {})
    learned = None if model.propensity is None else model.propensity.examination.tolist()
    if as_json:
        told = model.training.get(TWIN)
        choice = model.training.get("auto")
        print_json(
            {"model": str(out), "examination": learned, **history, TWIN: told, "auto": choice}
        )
        return
    typer.echo(f"{out}: {method.value} on {click_log}")
    if history.get("best_value") is not None:
        typer.echo(f"best validation value {history['best_value']:.4f} at {history['best_step']}")
    if learned is not None:
        typer.echo("examination  " + "  ".join(f"{value:.3f}" for value in learned))
    typer.echo(" ".join(training_verdict(model.training)))
    typer.echo(f"report       {out / 'report.html'}")


def _curve_context(
    model: PositionModel | None, contexts: tuple[str, ...], given: Propensity | None
) -> str | None:
    """The column that gives each of its values a curve, learned or given."""
    if model is not PositionModel.contextual:
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


def _remove_checkpoints(out: Path) -> None:
    for left in out.glob("checkpoint*.safetensors"):
        left.unlink(missing_ok=True)


def _share_or_file(text: str) -> Path | float:
    try:
        return float(text)
    except ValueError:
        pass
    path = Path(text)
    if not path.exists():
        raise DataError(f"--validation takes a share such as 0.1 or judged data; no file {text!r}")
    return path
