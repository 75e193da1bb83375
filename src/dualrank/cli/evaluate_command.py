"""`dualrank evaluate`."""

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
    from dualrank.evaluation.metric import Metric
    from dualrank.learning.model import Model
    from dualrank.pace import Heard
    from dualrank.report import Cell

logger = logging.getLogger(__name__)


def evaluate(
    ranking: Annotated[
        Path,
        typer.Argument(
            help="A model directory or a run: a file, or a folder or pattern of its parts."
        ),
    ],
    data: Annotated[Path, typer.Argument(help="LETOR text or Parquet, with grades or --qrels.")],
    qrels: Annotated[
        Path | None, typer.Option(help="TREC judgments, in the place of the data's own grades.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model or run, for Fisher's randomisation test.")
    ] = None,
    displayed: Annotated[
        Path | None,
        typer.Option(
            help="A click log; documents that it displayed are also judged by themselves."
        ),
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

    A ranker that learned from clicks has seen what was displayed, and may be good at that and bad
    at the rest; --displayed tells.

    Example: dualrank evaluate model/ data/test.txt --against naive/

    Example: dualrank evaluate scores.run features.parquet --qrels judged.qrels

    Example: dualrank evaluate run/ judged/ --against 'last-week/part-*.parquet'
    """
    from dualrank.data.qrels import account_of, with_qrels
    from dualrank.evaluation.evaluator import Evaluator
    from dualrank.evaluation.metric import PAPER_METRICS, parse_metrics
    from dualrank.report import Row, Table

    names = [name.strip() for name in metrics.split(",")]
    chosen = parse_metrics(names) if metrics else PAPER_METRICS

    def judged(model: Model | None) -> tuple[Dataset, int, list[str]]:
        found = open_features(data, model, None if qrels else max_grade)
        if qrels is None:
            return found, 0, []
        return *with_qrels(found, qrels, max_grade), account_of(found, qrels)

    model = _model(ranking)
    dataset, missing, notes = judged(model)
    if missing:
        logger.warning("%d judged documents of these queries are not in the data", missing)
    scores = {"value": _scores(ranking, dataset)}
    if against is not None:
        # Another model may know other features of the same documents.
        other = _model(against)
        same = other is None or _features(other) == _features(model)
        scores["against"] = _scores(against, dataset if same else judged(other)[0])
    about = f"{ranking} on {len(dataset)} queries, grades up to {dataset.max_grade:g}"
    with one_bar("evaluating") as report:
        result = _measured(dataset, scores, chosen, permutations, seed, report)
    if displayed is not None:
        rows = _displayed(displayed, dataset)
        about += f"; {displayed.name} displayed {rows.mean():.0%} of the documents"
        seen = {who: values[rows] for who, values in scores.items()}
        with one_bar("evaluating what was displayed") as report:
            apart = _measured(dataset.keep(rows), seen, chosen, permutations, seed, report)
        result |= {f"{metric} of displayed": values for metric, values in apart.items()}
    notes = Evaluator(dataset, chosen).account() + notes
    columns = tuple(next(iter(result.values())))
    table = Table(
        columns,
        tuple(Row(k, tuple(_cell(*each) for each in of.items())) for k, of in result.items()),
        corner="metric",
    )
    answer(as_json, result, about, table, *notes)


def _cell(column: str, value: float) -> Cell | str:
    """A number as the table shows it."""
    from dualrank.report import Cell, p_in_words

    return p_in_words(value) if column == "p_value" else Cell(value, decimals=4)


def _measured(
    dataset: Dataset,
    scores: dict[str, NDArray[np.floating[Any]]],
    metrics: Sequence[Metric],
    permutations: int,
    seed: int,
    report: Heard,
) -> dict[str, dict[str, float]]:
    """The mean of each metric by whose scores they are, and Fisher's test where there are two."""
    from dualrank.evaluation.evaluator import Evaluator
    from dualrank.evaluation.significance import fisher_test

    evaluator = Evaluator(dataset, metrics)
    found = {who: evaluator.per_query(values) for who, values in scores.items()}
    result = {}
    for number, metric in enumerate(found["value"]):

        def heard(done: float, total: float, number: int = number) -> None:
            report(number + done / total, len(found["value"]))

        per_query = [values[metric] for values in found.values()]
        result[metric] = {who: float(values[metric].mean()) for who, values in found.items()}
        if len(per_query) == 2:
            test = fisher_test(*per_query, permutations=permutations, seed=seed, progress=heard)
            result[metric] |= {"difference": test.difference, "p_value": test.p_value}
    return result


def _model(ranking: Path) -> Model | None:
    """The model, where the ranking is not a run."""
    from dualrank.data.runs import is_run
    from dualrank.learning.model import Model

    return None if is_run(ranking) else Model.load(ranking)


def _features(model: Model | None) -> tuple[int, Sequence[str] | None] | None:
    return None if model is None else (model.scaler.input_count, model.feature_names)


def _scores(ranking: Path, dataset: Dataset) -> NDArray[np.floating[Any]]:
    import numpy as np

    from dualrank.data.runs import read_run

    model = _model(ranking)
    with one_bar(f"scoring with {ranking.name}"):
        scores = read_run(ranking, dataset) if model is None else model.predict(dataset)
    missing = int(np.isneginf(scores).sum())
    if missing:
        logger.warning(
            "%s: %d of %d documents of the data are not in this run, and come last",
            *(ranking, missing, len(scores)),
        )
    return scores


def _displayed(log: Path, dataset: Dataset) -> NDArray[np.bool_]:
    """Which documents of a data set a log has displayed, for their queries."""
    import numpy as np

    from dualrank.data.log.read_log import read_log
    from dualrank.errors import DataError

    with one_bar(f"reading {log.name}") as report:
        found = read_log(log, partial=True, max_bad_share=1.0, progress=report)
    if found.catalogue is None:
        raise DataError(f"{log}: this log does not know the names of its documents")
    seen = set(found.catalogue.pairs())
    rows = np.array([pair in seen for pair in dataset.pairs()])
    if not rows.any():
        raise DataError(f"{log}: displays none of the documents of the data")
    return rows
