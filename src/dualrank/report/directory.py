"""The experiment directory: everything that an experiment leaves for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualrank.report.curves import true_examination
from dualrank.report.drift import drift_exhibits, drift_table, streams
from dualrank.report.results import Results
from dualrank.report.results_sheet import UNPROVEN, results_sheet
from dualrank.report.sheet import Section, Sheet
from dualrank.report.verdict import verdict

_TITLES = {
    "demo": "Learning to rank from biased clicks",
    "oracle-mode": "Learning to rank from biased clicks: oracle mode",
    "realistic-mode": "Learning to rank from biased clicks: realistic mode",
    "click-models": "Dual learning and click models",
    "drift": "Learning to rank from biased clicks while users change",
}
_POSITION_BASED = (
    "The clicks were simulated, by users who behave exactly as the position-based model assumes. A "
    "gain on simulated clicks is not a gain on your users: real users also click by habit, by "
    "trust in the top result and by looks. Judge a ranker learned from your log on judged queries "
    "or in an online test before you rely on it."
)
_OTHER_USERS = (
    "The clicks were simulated, by users of the kind {} on lists of BM25. Which method comes first "
    "depends on how users behave, how often lists are repeated and how much the features know of "
    "relevance: judge a ranker learned from your log on your own judged queries or in an online "
    "test before you rely on it."
)


def experiment_sheet(results: Results, sections: Sequence[Section] = ()) -> Sheet:
    """What is shown of an experiment."""
    settings = results.settings
    moments = []
    if streams(results):
        moments.append(Section("Moments", table=drift_table(results), file="table.md"))
    caveat = UNPROVEN
    if true_examination(results) is not None or "eta" in settings:
        caveat = _POSITION_BASED
    elif settings.get("users"):
        caveat = _OTHER_USERS.format(settings["users"])
    return results_sheet(
        results,
        _TITLES.get(results.experiment, results.experiment),
        verdict=verdict(results),
        exhibits=drift_exhibits(results),
        sections=[*moments, *sections],
        caveat=caveat,
    )


def write_experiment(
    results: Results, directory: Path, sections: Sequence[Section] = ()
) -> list[Path]:
    """Write `results.json`, the tables, the figures and `report.html`; return their paths."""
    results.write(directory / "results.json")
    return [directory / "results.json", *experiment_sheet(results, sections).write(directory)]
