"""`dualrank export`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from dualrank.cli.options import Without
from dualrank.cli.terminal import Json, Seed, answer, open_features, open_log
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import SettingsError


def export(
    model: Annotated[Path, typer.Argument(help="A model directory.")],
    to: Annotated[
        Literal["onnx", "letor"],
        typer.Option("--to", help="onnx: the ranker; letor: debiased labels."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    features: Annotated[
        Path | None,
        typer.Option(help="Documents: to compare ONNX on, or those of the log, for letor."),
    ] = None,
    log: Annotated[str | None, typer.Option(help="The click log, for --to letor.")] = None,
    max_weight: Annotated[float, typer.Option(help="Clips inverse weights.", min=1)] = 1_000.0,
    *,
    options: Annotated[LogOptions, Without("contexts")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write a model for other programs.

    ONNX takes raw features and gives scores; it is compared with the model before it is written,
    and refused where they differ by more than 1e-5. LETOR text has the displayed documents of the
    log, each with its clicks per session, weighted by the model's propensities (by context, where
    the model learned a curve for each), in the place of a grade: LightGBM, XGBoost and others can
    train on them.

    Example: dualrank export model/ --to onnx --out model.onnx

    Example: dualrank export model/ --to letor --log clicks.parquet --features train.txt --out y.txt
    """
    from dualrank.data.letor.writer import write_letor
    from dualrank.engines.onnx import debiased_labels, export_onnx
    from dualrank.learning.model import Model

    held = Model.load(model)
    documents = None
    if features is not None:
        documents = open_features(features, held.scaler.input_count, names=held.feature_names)
    if to == "onnx":
        sample = None if documents is None else documents.features
        difference = export_onnx(held, out, sample, seed=seed)
        answer(
            as_json,
            {"file": str(out), "max_difference": difference},
            f"{out}: differs from the model by at most {difference:.2g}",
        )
        return
    if log is None or documents is None:
        raise SettingsError("--to letor needs the click log (--log) and its --features")
    if held.propensity is None:
        method = held.training.get("method", "such")
        raise SettingsError(f"{model}: a {method} model has no propensities to debias clicks with")
    context = held.propensity.context
    options = replace(options, contexts=() if context is None else (context,))
    click_log = open_log(log, documents, options)
    labelled = debiased_labels(click_log, documents, held.propensity, max_weight)
    write_letor(labelled, out)
    answer(as_json, {"file": str(out), "documents": labelled.document_count}, f"{out}: {labelled}")
