"""How rankers do on the logged queries that are asked most, and on those that are asked least."""

from __future__ import annotations

from collections.abc import Sequence

from dualrank.report.labels import extra, metric_label, ordered_methods
from dualrank.report.result_table import method_row
from dualrank.report.results import Results
from dualrank.report.table import Cell, Table, with_best

METRICS = ("map", "ndcg@10", "err@10")
_PARTS = ("head", "tail")


def head_and_tail(results: Results, metrics: Sequence[str] = METRICS) -> Table | None:
    """Some metrics on either kind of queries; None where they are not told apart."""
    rows = []
    for name in ordered_methods(results):
        cells = []
        for part in _PARTS:
            found = [extra(run, part) for run in results.of(name)]
            known = [each for each in found if isinstance(each, dict)]
            if not known:
                break
            for metric in metrics:
                cells.append(Cell.of([float(each[metric]) for each in known]))
        if cells:
            rows.append(method_row(name, cells))
    if not rows:
        return None
    columns = tuple(
        f"{part.capitalize()} {metric_label(metric)}" for part in _PARTS for metric in metrics
    )
    return Table(tuple(columns), with_best(rows), corner="Method")
