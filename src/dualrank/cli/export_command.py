"""`dualrank export`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dualrank.cli.options import Without
from dualrank.cli.outputs import NewFile
from dualrank.cli.terminal import Json, Seed, answer, one_bar, open_features, open_log
from dualrank.cli.wording import in_options
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import DualrankError

OF_TRAIN = ("method", "ranker", "scaling", "activation", "elu-output")
"""Options of `dualrank train` that decide what an engine can hold."""


def export(
    model: Annotated[Path, typer.Argument(help="A model directory.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="The ranker: onnx, opensearch, elasticsearch, solr, vespa, lightgbm, xgboost; "
            "debiased labels: letor.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The file to write."), NewFile(beside=".weights")
    ],
    features: Annotated[
        Path | None,
        typer.Option(help="Documents: to compare rankers on, or those of the log, for letor."),
    ] = None,
    log: Annotated[str | None, typer.Option(help="The click log, for --to letor.")] = None,
    max_weight: Annotated[float, typer.Option(help="Clips inverse weights.", min=1)] = 1_000.0,
    grades: Annotated[
        int, typer.Option(help="Grades of LETOR text: 5 is 0 to 4, 0 means fractional labels.")
    ] = 5,
    *,
    options: Annotated[LogOptions, Without("contexts", "event_kinds")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write a model for other programs.

    Rankers are written for what serves them. ONNX takes raw features and gives scores, of networks
    and trees; OpenSearch and Solr take linear models and trees, Solr networks without ELU;
    Elasticsearch, LightGBM and XGBoost take trees; Vespa takes all. A template beside the file
    (of a feature set, a feature store, a rank profile) has the features that the engine must
    compute. What is written is read back by the rules of its format and compared with the model on
    documents with missing and extreme values; nothing is written where scores differ by more than
    1e-5 of the score. LETOR text has the displayed documents of the
    log, each with its clicks per session, weighted by the model's propensities (by context, where
    the model learned a curve for each), in the place of a grade: cut into whole-number grades where
    the least order is lost, as LightGBM and XGBoost want them. OUT.weights has a line for each
    document: the evidence behind its label, in sessions at the first position.

    Example: dualrank export model/ --to onnx --out model.onnx

    Example: dualrank export model/ --to opensearch --features train.parquet --out model.json

    Example: dualrank export model/ --to letor --log clicks.parquet --features train.txt --out y.txt
    """
    from dualrank.engines import export as write
    from dualrank.learning import Model

    held = Model.load(model)
    documents = click_log = None
    if features is not None:
        documents = open_features(features, held)
    if log is not None:
        context = None if held.propensity is None else held.propensity.context
        options = replace(options, contexts=() if context is None else (context,))
        click_log = open_log(log, documents, options)
    try:
        with one_bar(f"exporting to {to}"):
            written = write(
                held,
                to,
                out,
                documents=documents,
                log=click_log,
                max_weight=max_weight,
                grades=grades,
                seed=seed,
            )
    except DualrankError as error:
        error.args = (in_options(str(error), OF_TRAIN),)
        raise
    answer(as_json, {"file": str(out), **written.facts}, f"{out}: {written.sentence}")
