"""`dualrank rank` and `dualrank evaluate`: what a trained model is used for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.terminal import Json, MaxGrade, Seed, answer, one_bar, open_features

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualrank.data.dataset import Dataset
    from dualrank.learning.model import Model


logger = logging.getLogger(__name__)


def rank(
    model: Annotated[Path, typer.Argument(help="A model directory.")],
    data: Annotated[Path, typer.Argument(help="Features: Parquet or LETOR text.")],
    out: Annotated[Path, typer.Option("--out", help=".parquet, .csv, or .run (TREC).")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Score and rank the documents of every query.

    Example: dualrank rank model/ data/test.txt --out scores.parquet
    """
    from dualrank.data.runs import write_run
    from dualrank.learning.model import Model

    ranker = Model.load(model)
    dataset = open_features(data, ranker)
    with one_bar("ranking"):
        write_run(out, dataset, ranker.predict(dataset))
    summary = {"run": str(out), "queries": len(dataset), "documents": dataset.document_count}
    answer(as_json, summary, f"{out}: {len(dataset)} queries, {dataset.document_count} documents")


def evaluate(
    ranking: Annotated[Path, typer.Argument(help="A model directory or a run file.")],
    data: Annotated[Path, typer.Argument(help="LETOR text or Parquet, with grades or --qrels.")],
    qrels: Annotated[
        Path | None, typer.Option(help="TREC judgments, in the place of the data's own grades.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model or run, for Fisher's randomisation test.")
    ] = None,
    metrics: Annotated[
        str, typer.Option(help="Metrics, separated by commas; the default is the paper's.")
    ] = "",
    permutations: Annotated[int, typer.Option(help="Of Fisher's test.", min=1)] = 100_000,
    max_grade: MaxGrade = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure a ranking with MAP, nDCG and ERR, and test a difference.

    nDCG has gain 2^y − 1 and discount log2(rank + 1) over all documents; ERR uses the highest grade
    of the data; documents of grade 1 or more are relevant; a query without one counts 0.

    Example: dualrank evaluate model/ data/test.txt --against naive/

    Example: dualrank evaluate scores.run features.parquet --qrels judged.qrels
    """
    from dualrank.data.qrels import with_qrels
    from dualrank.evaluation.evaluator import Evaluator
    from dualrank.evaluation.metric import PAPER_METRICS, parse_metrics
    from dualrank.evaluation.significance import fisher_test
    from dualrank.report import Cell, Row, Table

    names = [name.strip() for name in metrics.split(",")]
    chosen = parse_metrics(names) if metrics else PAPER_METRICS
    model = _model(ranking)
    dataset = open_features(data, model, None if qrels else max_grade)
    if qrels is not None:
        dataset, missing = with_qrels(dataset, qrels, max_grade)
        if missing:
            logger.warning("%d judged documents of these queries are not in the data", missing)
    evaluator = Evaluator(dataset, chosen)
    ours = evaluator.per_query(_scores(ranking, dataset))
    result: dict[str, dict[str, float]] = {
        name: {"value": float(values.mean())} for name, values in ours.items()
    }
    if against is not None:
        # Another model may know other features of the same documents.
        other = _model(against)
        same = other is None or _features(other) == _features(model)
        seen = dataset if same else open_features(data, other)
        theirs = evaluator.per_query(_scores(against, seen))
        for name, values in ours.items():
            test = fisher_test(values, theirs[name], permutations=permutations, seed=seed)
            result[name] |= {
                "against": float(theirs[name].mean()),
                "difference": test.difference,
                "p_value": test.p_value,
            }
    rows = (
        Row(name, tuple(Cell(v, decimals=4) for v in of.values())) for name, of in result.items()
    )
    columns = tuple(next(iter(result.values())))
    answer(
        as_json,
        result,
        f"{ranking} on {len(dataset)} queries, grades up to {dataset.max_grade:g}",
        Table(columns, tuple(rows), corner="metric"),
    )


def _model(ranking: Path) -> Model | None:
    """The model, where the ranking is not a run file."""
    from dualrank.learning.model import Model

    return Model.load(ranking) if ranking.is_dir() else None


def _features(model: Model | None) -> tuple[int, Sequence[str] | None] | None:
    return None if model is None else (model.scaler.input_count, model.feature_names)


def _scores(ranking: Path, dataset: Dataset) -> NDArray[np.floating[Any]]:
    from dualrank.data.runs import read_run

    model = _model(ranking)
    return read_run(ranking, dataset) if model is None else model.predict(dataset)
