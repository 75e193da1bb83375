"""Results as a table: methods by metrics, with spread and significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualrank.certainty import LEVEL
from dualrank.report.labels import (
    extra,
    main_metric,
    method,
    metric_label,
    ordered_methods,
    ordered_metrics,
    setting_label,
    swept_setting,
)
from dualrank.report.results import Results, Run
from dualrank.report.table import BETTER, WORSE, Cell, Row, Table, with_best

_KEPT_FIRST = ("map", "err@10", "ndcg@1", "ndcg@3", "ndcg@5")


def result_table(results: Results) -> Table:
    """The runs summarised over seeds; a swept value gives every method a row per value."""
    metrics = ordered_metrics(m for run in results.runs for m in run.metrics)
    swept, first = swept_setting(results), main_metric(results)
    rows = []
    for name in ordered_methods(results):
        for suffix, runs in _by_setting(results.of(name), swept):
            # The test compares methods over all values, not within one of them.
            test = results.significance if swept is None else {}
            rows.append(method_row(name, [_cell(runs, name, m, test) for m in metrics], suffix))
    return Table(
        tuple(metric_label(metric) for metric in metrics),
        tuple(rows) if swept else with_best(rows),
        corner="Method",
        main=first and metric_label(first),
        kept_first=[metric_label(metric) for metric in _KEPT_FIRST],
        **tested_by(results.significance),
    )


def method_row(name: str, cells: Sequence[Cell | str | None], suffix: str = "") -> Row:
    """The row of a method, as every table shows it.

    The oracle learns from the judgements themselves and stands outside the contest for the best.
    """
    groups = {"dla": "dla", "initial": "bounds", "oracle": "bounds"}
    group = groups.get(name) or ("svm" if name.startswith("svm-") else "dnn")
    return Row(
        method(name).label + suffix,
        tuple(cells),
        group,
        strong=name == "dla",
        aside=name == "oracle",
    )


def significance_mark(test: Mapping[str, Any], name: str, metric: str) -> str:
    """`BETTER` where the method is significantly better than the reference, `WORSE` where worse."""
    p = test.get("p_values", {}).get(name, {}).get(metric)
    difference = test.get("difference", {}).get(name, {}).get(metric)
    if p is None or not difference or p > test.get("alpha", LEVEL):
        return ""
    return BETTER if difference > 0 else WORSE


def tested_by(test: Mapping[str, Any]) -> dict[str, Any]:
    """What a `Table` says about the test behind its marks: its `reference` and `alpha`."""
    reference = method(str(test.get("reference", "dla"))).label
    return {"reference": reference, "alpha": float(test.get("alpha", LEVEL))}


def _by_setting(runs: list[Run], swept: str | None) -> list[tuple[str, list[Run]]]:
    if swept is None:
        return [("", runs)]
    groups: dict[object, list[Run]] = {}
    for run in runs:
        groups.setdefault(extra(run, swept), []).append(run)
    ordered = sorted(groups.items(), key=lambda item: (isinstance(item[0], str), item[0] or 0))
    return [(f", {setting_label(swept)} = {value}", group) for value, group in ordered]


def _cell(runs: Sequence[Run], name: str, metric: str, test: Mapping[str, Any]) -> Cell | None:
    values = [run.metrics[metric] for run in runs if metric in run.metrics]
    return Cell.of(values, significance_mark(test, name, metric)) if values else None
