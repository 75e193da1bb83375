"""What methods and metrics are called, in which order they stand, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dualrank.report.results import Results, Run


@dataclass(frozen=True)
class Method:
    """How a method appears: its label, one sentence about it, and its look in figures.

    `color` is a name of the palette in `theme`. Colour and marker both tell methods apart, so
    that figures also work without colours.
    """

    label: str
    about: str
    color: str
    marker: str


# In the order of the rows of the paper's Table 2, then what the paper's other experiments add.
METHODS = {
    "dla": Method(
        "DNN with DLA",
        "A neural ranker and the propensity model behind it, learned together from the clicks: "
        "the Dual Learning Algorithm.",
        "blue",
        "o",
    ),
    "svm-naive": Method(
        "Ranking SVM, NoCorrect", "A linear ranker that takes clicks at face value.", "green", "<"
    ),
    "svm-randlist": Method(
        "Ranking SVM, RandList",
        "A linear ranker with clicks weighted by propensities measured on shuffled results.",
        "vermilion",
        "D",
    ),
    "naive": Method(
        "DNN, NoCorrect", "The same neural ranker, taking clicks at face value.", "green", "^"
    ),
    "randlist": Method(
        "DNN, RandList",
        "The same neural ranker with clicks weighted by propensities measured on shuffled "
        "results, an experiment that shows users random lists.",
        "vermilion",
        "s",
    ),
    "click-model-ubm": Method(
        "DNN, UBM",
        "The same neural ranker, trained on relevance from the user browsing model.",
        "orange",
        "P",
    ),
    "click-model-dbn": Method(
        "DNN, DBN",
        "The same neural ranker, trained on relevance from the dynamic Bayesian network model.",
        "sky",
        "X",
    ),
    "click-model-dbn:attraction": Method(
        "DNN, DBN's attraction",
        "The same neural ranker, trained on how attractive the dynamic Bayesian network model "
        "holds a page to be, whether or not it satisfies.",
        "sky",
        "D",
    ),
    "click-model-pbm": Method(
        "DNN, PBM",
        "The same neural ranker, trained on relevance from the position-based model.",
        "vermilion",
        "p",
    ),
    "click-model-document-ctr": Method(
        "DNN, click-through",
        "The same neural ranker, trained on the share of displays on which a page was clicked.",
        "ink",
        ">",
    ),
    "auto": Method(
        "DNN, auto",
        "The correction that predicts held-out clicks best, or none where none is clearly better.",
        "orange",
        "*",
    ),
    "initial": Method(
        "Initial Ranker", "The ranker whose lists the users saw and clicked on.", "gray", "v"
    ),
    "oracle": Method(
        "Oracle DNN",
        "The same neural ranker, trained on the judgements instead of clicks: what perfect "
        "feedback would give.",
        "purple",
        "d",
    ),
}

_FAMILIES = {"map": "MAP", "ndcg": "nDCG", "err": "ERR", "dcg": "DCG", "mrr": "MRR"}
_SETTINGS = {"eta": "η", "epsilon": "ε", "sessions_per_list": "sessions per list"}


def method(name: str) -> Method:
    """How a method appears; one that is not known appears under its own name."""
    return METHODS.get(name) or Method(name, "", "orange", "h")


def ordered_methods(results: Results) -> list[str]:
    """The methods that ran, in the order of the paper's Table 2, unknown ones last."""
    ran = results.methods
    return [m for m in METHODS if m in ran] + [m for m in ran if m not in METHODS]


def metric_label(metric: str) -> str:
    """The metric as people write it.

    >>> metric_label("ndcg@10"), metric_label("map"), metric_label("precision@5")
    ('nDCG@10', 'MAP', 'Precision@5')
    """
    family, at, cutoff = metric.partition("@")
    return _FAMILIES.get(family, family[:1].upper() + family[1:]) + at + cutoff


def ordered_metrics(metrics: Iterable[str]) -> list[str]:
    """Metrics as in the paper's Table 2: those without a cutoff first, then by cutoff.

    >>> ordered_metrics(["err@10", "ndcg@10", "err@1", "map", "ndcg@1"])
    ['map', 'ndcg@1', 'err@1', 'ndcg@10', 'err@10']
    """
    families = list(_FAMILIES)

    def place(metric: str) -> tuple[int, int, str]:
        family, _, cutoff = metric.partition("@")
        rank = families.index(family) if family in families else len(families)
        return int(cutoff) if re.fullmatch("[0-9]+", cutoff) else 0, rank, metric

    return sorted(set(metrics), key=place)


def main_metric(results: Results) -> str | None:
    """The metric that is spoken about: nDCG@10, or the last column of the table."""
    metrics = ordered_metrics(metric for run in results.runs for metric in run.metrics)
    if "ndcg@10" in metrics:
        return "ndcg@10"
    return metrics[-1] if metrics else None


def setting_label(setting: str) -> str:
    """A setting as people write it: a Greek letter where the paper has one."""
    return _SETTINGS.get(setting, setting)


def extra(run: Run, key: str) -> object:
    """What a run holds beyond the common keys, or None."""
    return (run.model_extra or {}).get(key)


def swept_setting(results: Results) -> str | None:
    """The key whose value differs between runs of one method and seed, if there is one."""
    keys = dict.fromkeys(key for run in results.runs for key in run.model_extra or {})
    for key in keys:
        seen: dict[tuple[str, int], set[float]] = {}
        for run in results.runs:
            value = extra(run, key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                seen.setdefault((run.method, run.seed), set()).add(value)
        if any(len(values) > 1 for values in seen.values()):
            return key
    return None
