"""Results as a sheet: the table, every figure that they hold data for, and how to read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from dualrank.certainty import LEVEL
from dualrank.report.console import Bars
from dualrank.report.curves import propensity_curves, true_examination
from dualrank.report.figures import (
    learning_curve_figure,
    metric_figure,
    propensity_figure,
    sweep_figure,
)
from dualrank.report.in_words import in_words
from dualrank.report.labels import (
    method,
    metric_label,
    ordered_methods,
    setting_label,
    swept_setting,
)
from dualrank.report.method_table import result_table
from dualrank.report.results import Results
from dualrank.report.sheet import Exhibit, Explanation, Section, Sheet
from dualrank.sentences import duration

UNPROVEN = (
    "A gain on these test queries is not yet a gain on your users. Judge a ranker on your own "
    "judged queries or in an online test before you rely on it."
)
_SWEPT_METRICS = ("ndcg@10", "err@10", "mse")
_METRICS = (
    "nDCG: gain 2^grade − 1, discount log2(rank + 1), ideal order over all documents of the query.",
    "ERR: chance of satisfaction (2^grade − 1) / 2^(highest grade of the data set).",
    "MAP: documents of grade 1 and above are relevant.",
    "All documents of a test query are ranked, not only those that were shown; ties keep the "
    "order of the input.",
)
_WEIGHTS = Markup(
    "Users see the top of a list more often than its end, so a missing click further down says "
    "little. Examination is how often a position is looked at, relative to the first. A click at "
    "position <i>i</i> is counted P(1)/P(<i>i</i>) times, which makes up for the times when nobody "
    "looked. The steeper the curve, the more a few clicks far down decide, and the more an error "
    "in their weight costs."
)
_MARKS = Markup(
    'A raised <sup class="better">+</sup> marks a method that is significantly better than {}, a '
    'raised <sup class="worse">−</sup> one that is significantly worse, by Fisher’s '
    "randomisation test{} at the level {}. "
    "Without a mark, this experiment does not tell the two apart. Each cell is tested by itself: "
    "among a hundred cells without any real difference, about {} would be marked."
)


def results_sheet(
    results: Results,
    title: str,
    *,
    verdict: Sequence[str] = (),
    exhibits: Sequence[Exhibit] = (),
    sections: Sequence[Section] = (),
    caveat: str = UNPROVEN,
) -> Sheet:
    """A sheet on results, with what an experiment adds to what all have in common.

    `exhibits` follow the common figures, `sections` the common sections; `caveat` says what the
    results do not show.
    """
    settings = results.settings
    table = result_table(results)
    common = []
    if table.rows and table.columns:
        common.append(Section("Results", table=table, file="table.md"))
    common.append(Section("Figures", exhibits=(*result_exhibits(results), *exhibits)))
    times = {"Time per run": _times(results)} if results.runs else {}
    return Sheet(
        title,
        summary=_summary(results),
        verdict=verdict,
        sections=(*common, *sections),
        explanations=(*_explanations(results), Explanation("What this does not show", caveat)),
        settings={**settings, **times},
        command=settings.get("command", ""),
        version=settings.get("version", ""),
        bars=_bars(results),
    )


def result_exhibits(results: Results) -> list[Exhibit]:
    """The figures that results hold data for: curves, methods, learning, and what is swept."""
    band = band_caption(results)
    examination = Exhibit(
        "examination",
        partial(propensity_figure, results, ["examination"]),
        "How likely users look at a position, relative to the first one." + band,
    )
    weight = Exhibit(
        "weight",
        partial(propensity_figure, results, ["weight"]),
        "How much a click counts at each position once this is corrected: one divided by the "
        "examination." + band,
    )
    methods = "Each method, the best on top, with the mean written at the right."
    if band:
        methods += " Faint dots are seeds, bars one standard deviation."
    exhibits = [
        Exhibit(
            "propensity",
            partial(propensity_figure, results),
            "Examination and the weights that follow." + band,
            as_png=True,
            panels=(examination, weight),
        ),
        Exhibit(
            "methods", partial(metric_figure, results), methods + " The dotted line marks DLA."
        ),
        Exhibit(
            "learning-curve",
            partial(learning_curve_figure, results),
            "How the rankers improve while they learn; the axis does not start at zero." + band,
        ),
    ]
    if (swept := swept_setting(results)) is not None:
        exhibits += [sweep_exhibit(results, swept, metric) for metric in _SWEPT_METRICS]
    return exhibits


def sweep_exhibit(results: Results, swept: str, metric: str, name: str | None = None) -> Exhibit:
    """A metric against a swept setting, as `figure-{name or swept}-{metric}.svg`."""
    what = metric_label(metric)
    if metric == "mse":
        what = "Mean squared error of the inverse propensity weights"
    return Exhibit(
        f"{_file_name(name or swept)}-{_file_name(metric)}",
        partial(sweep_figure, results, swept, metric),
        f"{what} against {setting_label(swept)}." + band_caption(results),
    )


def band_caption(results: Results) -> str:
    """What the bands around lines are, to be added to a caption; nothing where there are none."""
    many = len({run.seed for run in results.runs}) > 1
    return " Bands: one standard deviation over seeds." if many else ""


def _summary(results: Results) -> str:
    """One line under the title: on what, how often, how long."""
    seeds = len({run.seed for run in results.runs})
    parts = []
    if results.settings.get("data"):
        parts.append(in_words(results.settings["data"]))
    if len(results.methods) > 1:
        parts.append(f"{len(results.methods)} methods")
    if seeds:
        parts.append(f"{seeds} seed{'s' * (seeds != 1)}")
        parts.append(f"{duration(sum(run.seconds for run in results.runs))} of computing")
    return " · ".join(parts)


def _times(results: Results) -> str:
    """How long one run of each method took."""
    means = []
    for name in ordered_methods(results):
        seconds = [run.seconds for run in results.of(name)]
        means.append(f"{method(name).label} {duration(sum(seconds) / len(seconds))}")
    return "; ".join(means)


def _explanations(results: Results) -> Iterable[Explanation]:
    looks = [method(name) for name in ordered_methods(results)]
    if any(look.about for look in looks):
        terms = [(look.label, look.about) for look in looks if look.about]
        yield Explanation("The rows", terms=terms)
    if results.significance.get("p_values"):
        yield Explanation("Plus and minus", _test(results.significance))
    yield Explanation("The metrics", items=_METRICS)
    if propensity_curves(results):
        yield Explanation("The inverse propensity weight", _WEIGHTS)


def _test(test: Mapping[str, Any]) -> Markup:
    """The significance test in words."""
    permutations = test.get("permutations")
    return _MARKS.format(
        method(str(test.get("reference", "dla"))).label,
        f" with {in_words(permutations)} permutations" if permutations else "",
        in_words(test.get("alpha", LEVEL)),
        in_words(100.0 * test.get("alpha", LEVEL)),
    )


def _bars(results: Results) -> Bars | None:
    curves = propensity_curves(results)
    if not curves:
        return None
    name = next(iter(curves))
    return Bars(method(name).label, curves[name][0], true_examination(results))


def _file_name(text: str) -> str:
    return re.sub("[^a-z0-9-]", "", text.lower())
