"""The experiment directory: everything that an experiment leaves for people and programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dualrank.report.drift import drift_figures, drift_table, streams
from dualrank.report.figures import (
    learning_curve_figure,
    metric_figure,
    propensity_figure,
    sweep_figure,
)
from dualrank.report.labels import swept_setting
from dualrank.report.page import Section, render_page
from dualrank.report.result_table import ResultTable
from dualrank.report.results import Results
from dualrank.report.theme import png, svg_file
from dualrank.storage import atomic_file, write_text


def write_experiment(
    results: Results, directory: Path, sections: Sequence[Section] = ()
) -> list[Path]:
    """Write `results.json`, `table.md`, the figures and `report.html`; return their paths.

    Each file is either whole or not there. Figures whose data the results do not hold are left
    out. The propensity curve is also a PNG, for places that take no SVG.
    """
    written = []

    def write(name: str, content: str | bytes) -> None:
        path = directory / name
        if isinstance(content, str):
            write_text(path, content)
        else:
            with atomic_file(path) as file:
                file.write(content)
        written.append(path)

    results.write(directory / "results.json")
    written.append(directory / "results.json")
    table = ResultTable.from_results(results).markdown()
    write("table.md", table + ("\n" + drift_table(results) if streams(results) else ""))
    swept = swept_setting(results)
    figures = {
        "propensity": propensity_figure(results),
        "methods": metric_figure(results),
        "learning-curve": learning_curve_figure(results),
    }
    if swept is not None:
        for metric in ("ndcg@10", "err@10", "mse"):
            figures[f"{_file_name(swept)}-{_file_name(metric)}"] = sweep_figure(
                results, swept, metric
            )
    figures |= {name: figure for name, (figure, _) in drift_figures(results).items()}
    for name, figure in figures.items():
        if figure is not None:
            write(f"figure-{name}.svg", svg_file(figure))
            if name == "propensity":
                write(f"figure-{name}.png", png(figure))
    write("report.html", render_page(results, sections))
    return written


def _file_name(text: str) -> str:
    return re.sub("[^a-z0-9-]", "", text.lower())
