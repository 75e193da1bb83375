"""Methods by sessions per list: who is ahead of dual learning, and from how many sessions on."""

from __future__ import annotations

import numpy as np

from dualrank.experiments.results import Results
from dualrank.report.names import extra, method, metric_label, ordered_methods
from dualrank.report.tables import mean_and_spread

REFERENCE = "dla"
SWEPT = "sessions_per_list"


def sessions_table(results: Results, metric: str = "ndcg@10") -> str:
    """A Markdown table: a row per method, a column per number of sessions, marks as in Table 3."""
    numbers = _numbers(results)
    lines = [
        f"| {metric_label(metric)} | " + " | ".join(f"{n} sessions" for n in numbers) + " |",
        "|---|" + "---:|" * len(numbers),
    ]
    for name in ordered_methods(results):
        cells = []
        for number in numbers:
            mean, spread = mean_and_spread(_values(results, name, number, metric))
            around = "" if spread is None else f" ± {spread:.3f}"
            cells.append(f"{mean:.3f}{around}{_mark(results, name, number, metric)}")
        lines.append(f"| {method(name).label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


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


def _mark(results: Results, name: str, number: int, metric: str) -> str:
    test = results.significance.get("by_sessions_per_list", {}).get(str(number), {})
    p = test.get("p_values", {}).get(name, {}).get(metric)
    difference = test.get("difference", {}).get(name, {}).get(metric)
    if p is None or not difference or p > test.get("alpha", 0.05):
        return ""
    return "⁺" if difference > 0 else "⁻"
