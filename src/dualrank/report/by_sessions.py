"""Methods by sessions per list: who is ahead of dual learning, and from how many sessions on."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualrank.report.labels import extra, method, ordered_methods
from dualrank.report.result_table import method_row, significance_mark, tested_by
from dualrank.report.results import Results
from dualrank.report.table import Cell, Table, with_best

REFERENCE = "dla"
SWEPT = "sessions_per_list"


def sessions_table(results: Results, metric: str = "ndcg@10") -> Table:
    """One metric, a row per method and a column per number of sessions, each tested by itself."""
    numbers = _numbers(results)
    tests: dict[str, Any] = results.significance.get("by_sessions_per_list", {})
    rows = []
    for name in ordered_methods(results):
        cells = []
        for number in numbers:
            mark = significance_mark(tests.get(str(number), {}), name, metric)
            cells.append(Cell.of(_values(results, name, number, metric), mark))
        rows.append(method_row(name, cells))
    test: dict[str, Any] = next(iter(tests.values()), {})
    columns = tuple(f"{n} sessions" for n in numbers)
    return Table(columns, with_best(rows), corner="Method", **tested_by(test))


def crossings(results: Results, metric: str = "ndcg@10") -> list[str]:
    """For every method, in one sentence, where it is above dual learning by its means."""
    numbers = _numbers(results)
    names = ordered_methods(results)
    if REFERENCE not in names:
        return []
    sentences = []
    for name in names:
        if name == REFERENCE:
            continue
        above = [
            n
            for n in numbers
            if np.mean(_values(results, name, n, metric))
            > np.mean(_values(results, REFERENCE, n, metric))
        ]
        label = method(name).label
        if not above:
            sentences.append(f"{label} is below DLA at every number of sessions per list.")
        elif len(above) == len(numbers):
            sentences.append(f"{label} is above DLA at every number of sessions per list.")
        else:
            where = ", ".join(map(str, above))
            sentences.append(f"{label} is above DLA at {where} sessions per list, else below.")
    return sentences


def _numbers(results: Results) -> list[int]:
    found = {extra(run, SWEPT) for run in results.runs}
    return sorted(number for number in found if isinstance(number, int))


def _values(results: Results, name: str, number: int, metric: str) -> list[float]:
    return [run.metrics[metric] for run in results.of(name) if extra(run, SWEPT) == number]
