"""The table of scenarios: each a row, with what every method reaches and what diagnose says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dualrank.experiments.results import Results, Run
from dualrank.experiments.scenarios import METHODS, SCENARIOS
from dualrank.report.names import extra
from dualrank.storage import write_text

if TYPE_CHECKING:
    from rich.table import Table

METRIC = "ndcg@10"
HEADINGS = {
    "naive": "naive",
    "truth": "IPW, truth",
    "dla": "DLA",
    "auto": "auto",
}


@dataclass(frozen=True)
class ScenarioRow:
    """One scenario over its seeds."""

    title: str
    values: dict[str, list[float]]
    leads: list[float]
    chosen: list[str]
    verdicts: list[str]

    @property
    def gains(self) -> list[float]:
        """By how much dual learning is above the naive ranker, seed by seed."""
        return [d - n for d, n in zip(self.values["dla"], self.values["naive"], strict=True)]

    def cells(self) -> list[str]:
        """The row as printed."""
        means = [_mean_and_spread(self.values[name]) for name in METHODS]
        gain = f"{np.mean(self.gains):+.4f}"
        lead = f"{np.mean(self.leads):+.1f} ({min(self.leads):+.1f} to {max(self.leads):+.1f})"
        return [self.title, *means, gain, lead, _counted(self.chosen), _counted(self.verdicts)]


def scenario_rows(results: Results) -> list[ScenarioRow]:
    """The runs of each scenario, in order."""
    rows = []
    for name in dict.fromkeys(str(extra(run, "scenario")) for run in results.runs):
        runs = [run for run in results.runs if extra(run, "scenario") == name]
        rows.append(
            ScenarioRow(
                SCENARIOS[name].title,
                {method: [r.metrics[METRIC] for r in _of(runs, method)] for method in METHODS},
                [float(str(extra(run, "lead"))) for run in _of(runs, "dla")],
                [str(extra(run, "chosen")) for run in _of(runs, "auto")],
                [str(extra(run, "verdict")) for run in _of(runs, "auto")],
            )
        )
    return rows


COLUMNS = ("log", *HEADINGS.values(), "DLA − naive", "lead, in errors", "auto took", "diagnose")


def scenario_markdown(results: Results) -> str:
    """The table for `table.md`."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in scenario_rows(results)]
    return "\n".join(lines) + "\n\n" + note(results) + "\n"


def scenario_table(results: Results) -> Table:
    """The table for a terminal."""
    from rich.table import Table

    table = Table(*COLUMNS, box=None, pad_edge=False)
    for row in scenario_rows(results):
        table.add_row(*row.cells())
    return table


def note(results: Results) -> str:
    """What the numbers are."""
    seeds = len(results.settings["seeds"])
    return (
        f"nDCG@10 on test queries, mean ± standard deviation over {seeds} "
        f"seed{'s' * (seeds != 1)}. The lead is how much better dual learning predicts held-out "
        "clicks than the naive ranker, in standard errors; above 2 it is taken for clear."
    )


def write_scenarios(results: Results, directory: Path) -> list[Path]:
    """Write `results.json` and `table.md`."""
    paths = [directory / "results.json", directory / "table.md"]
    results.write(paths[0])
    write_text(paths[1], scenario_markdown(results))
    return paths


def _of(runs: list[Run], method: str) -> list[Run]:
    return sorted((run for run in runs if run.method == method), key=lambda run: run.seed)


def _mean_and_spread(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


def _counted(words: list[str]) -> str:
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    if len(counts) == 1:
        return words[0]
    return ", ".join(f"{word} ({count})" for word, count in counts.items())
