"""How rankers do on the logged queries that are asked most, and on those that are asked least."""

from __future__ import annotations

from collections.abc import Sequence

from dualrank.experiments.results import Results
from dualrank.report.names import extra, method, metric_label, ordered_methods
from dualrank.report.tables import mean_and_spread

METRICS = ("map", "ndcg@10", "err@10")
_PARTS = {"head": "asked most", "tail": "asked least"}


def head_and_tail(results: Results, metrics: Sequence[str] = METRICS) -> str:
    """A Markdown table, means and standard deviations over seeds; empty where nothing is known."""
    rows = []
    for name in ordered_methods(results):
        cells = []
        for part in _PARTS:
            values = [extra(run, part) for run in results.of(name)]
            known = [each for each in values if isinstance(each, dict)]
            if not known:
                break
            cells += [_cell([float(each[metric]) for each in known]) for metric in metrics]
        if cells:
            rows.append(f"| {method(name).label} | {' | '.join(cells)} |")
    if not rows:
        return ""
    titles = [f"{metric_label(m)}, {about}" for about in _PARTS.values() for m in metrics]
    head = ["| | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    return "\n".join([*head, *rows]) + "\n"


def _cell(values: Sequence[float]) -> str:
    mean, spread = mean_and_spread(values)
    return f"{mean:.3f}" if spread is None else f"{mean:.3f} ± {spread:.3f}"
