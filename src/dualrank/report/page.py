"""The report: one HTML page that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dualrank.report.curves import propensity_curves, true_examination
from dualrank.report.drift import drift_figures
from dualrank.report.figures import (
    learning_curve_figure,
    metric_figure,
    propensity_figure,
    sweep_figure,
)
from dualrank.report.labels import (
    Method,
    method,
    metric_label,
    ordered_methods,
    setting_label,
    swept_setting,
)
from dualrank.report.result_table import ResultTable
from dualrank.report.results import Results
from dualrank.report.theme import DARK, FONT, LIGHT, css_variables, svg_inline
from dualrank.report.verdict import verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLES = {
    "demo": "Learning to rank from biased clicks",
    "oracle-mode": "Learning to rank from biased clicks: oracle mode",
    "realistic-mode": "Learning to rank from biased clicks: realistic mode",
    "click-models": "Dual learning and click models",
    "drift": "Learning to rank from biased clicks while users change",
}
_SETTINGS = {
    "data": "Data",
    "queries": "Queries",
    "documents": "Documents",
    "features": "Features",
    "ranker": "Ranker",
    "users": "Users",
    "sessions_per_list": "Sessions per list, on average",
    "lists_per_query": "Lists per query",
    "steps": "Training steps",
    "batch_size": "Batch size",
    "eta": "Position bias, η",
    "epsilon": "Click noise, ε",
    "true_examination": "True examination",
    "seeds": "Seeds",
}
_SHOWN_ELSEWHERE = {"command", "version", "metric definitions", "metric_definitions"}
_METRICS = (
    "nDCG: gain 2^grade − 1, discount log2(rank + 1), ideal order over all documents of the query.",
    "ERR: chance of satisfaction (2^grade − 1) / 2^(highest grade of the data set).",
    "MAP: documents of grade 1 and above are relevant.",
    "All documents of a test query are ranked, not only those that were shown; ties keep the "
    "order of the input.",
)


@dataclass(frozen=True)
class Drawing:
    """A figure in the page with what it shows."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Section:
    """A further table of an experiment, with what it shows."""

    title: str
    text: str
    table: Markup
    note: str
    drawings: tuple[Drawing, ...] = ()


def render_page(results: Results, sections: Sequence[Section] = ()) -> str:
    """The whole report as HTML: no script, style, font or picture from elsewhere."""
    table = ResultTable.from_results(results)
    settings = results.settings
    return render(
        "report.html",
        title=_TITLES.get(results.experiment, results.experiment),
        summary=_summary(results),
        verdict=verdict(results),
        table=Markup(table.html()) if table.rows and table.metrics else None,
        table_note=table.note,
        drawings=_drawings(results),
        sections=sections,
        methods=_about_methods(results),
        reference=table.reference,
        test=_test(results),
        metric_definitions=_metric_definitions(settings),
        weights=bool(propensity_curves(results)),
        simulated=true_examination(results) is not None or "eta" in settings,
        users=settings.get("users"),
        settings=described(settings),
        times=_times(results),
        version=settings.get("version"),
        command=settings.get("command"),
    )


def render(template: str, **content: Any) -> str:
    """A page in the common dress: no script, style, font or picture from elsewhere."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dualrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(
        **content,
        light=Markup(css_variables(LIGHT)),
        dark=Markup(css_variables(DARK)),
        font=Markup(FONT),
    )


def _drawings(results: Results) -> list[Drawing]:
    """The figures, each narrow enough to be read on a phone."""
    band = " Bands: one standard deviation over seeds." if _many_seeds(results) else ""
    found: list[tuple[str, Figure | None, str]] = [
        (
            "examination",
            propensity_figure(results, ["examination"]),
            "How likely users look at a position, relative to the first one." + band,
        ),
        (
            "weight",
            propensity_figure(results, ["weight"]),
            "How much a click counts at each position once this is corrected: one divided by the "
            "examination." + band,
        ),
        (
            "methods",
            metric_figure(results),
            "Each method, the best on top, with the mean written at the right."
            + (" Faint dots are seeds, bars one standard deviation." * bool(band))
            + " The dotted line marks DLA.",
        ),
        (
            "learning",
            learning_curve_figure(results),
            "How the rankers improve while they learn; the axis does not start at zero." + band,
        ),
    ]
    swept = swept_setting(results)
    if swept is not None:
        for metric in ("ndcg@10", "err@10", "mse"):
            what = (
                "Mean squared error of the inverse propensity weights"
                if metric == "mse"
                else metric_label(metric)
            )
            found.append(
                (
                    f"sweep-{metric.replace('@', '')}",
                    sweep_figure(results, swept, metric),
                    f"{what} against {setting_label(swept)}." + band,
                )
            )
    for name, (figure, caption) in drift_figures(results).items():
        found.append((name, figure, caption + band))
    return [drawing(figure, name, caption) for name, figure, caption in found if figure is not None]


def drawing(figure: Figure, name: str, caption: str) -> Drawing:
    """A figure for the page, under a name that no other figure of the page has."""
    return Drawing(Markup(svg_inline(figure, name, caption)), caption)


def _summary(results: Results) -> str:
    """One line under the title: on what, how often, how long."""
    seeds = len({run.seed for run in results.runs})
    parts = [
        _text(results.settings["data"]) if results.settings.get("data") else "",
        f"{len(results.methods)} methods" if len(results.methods) > 1 else "",
        f"{seeds} seed{'s' * (seeds != 1)}" if seeds else "",
        f"{duration(sum(run.seconds for run in results.runs))} of computing"
        if results.runs
        else "",
    ]
    return " · ".join(part for part in parts if part)


def _about_methods(results: Results) -> list[Method]:
    found = (method(name) for name in ordered_methods(results))
    return [each for each in found if each.about]


def _test(results: Results) -> dict[str, str] | None:
    """The significance test in words, or None where there was none."""
    test = results.significance
    if not test.get("p_values"):
        return None
    name = str(test.get("test", "fisher"))
    permutations = test.get("permutations")
    return {
        "name": "Fisher’s randomisation test" if name == "fisher" else name,
        "permutations": f" with {_text(permutations)} permutations" if permutations else "",
        "alpha": _text(test.get("alpha", 0.05)),
        "by_chance": _text(100.0 * test.get("alpha", 0.05)),
    }


def _metric_definitions(settings: Mapping[str, Any]) -> Iterable[str]:
    given = settings.get("metric definitions") or settings.get("metric_definitions") or _METRICS
    if isinstance(given, Mapping):
        return [f"{metric_label(str(name))}: {text}" for name, text in given.items()]
    return [given] if isinstance(given, str) else [_text(each) for each in given]


def described(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings in words, the known ones first and under their names."""
    known = [key for key in _SETTINGS if settings.get(key) is not None]
    others = [key for key in settings if key not in _SETTINGS and key not in _SHOWN_ELSEWHERE]
    return [
        (_SETTINGS.get(key, key.replace("_", " ").capitalize()), _text(settings[key]))
        for key in [*known, *others]
    ]


def _text(value: object) -> str:
    """A value as people write it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _times(results: Results) -> str:
    """How long one run of each method took."""
    means = []
    for name in ordered_methods(results):
        seconds = [run.seconds for run in results.of(name)]
        means.append(f"{method(name).label} {duration(sum(seconds) / len(seconds))}")
    return "; ".join(means)


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.42), duration(75), duration(3725)
    ('0.4 s', '1 min 15 s', '1 h 2 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _many_seeds(results: Results) -> bool:
    return len({run.seed for run in results.runs}) > 1
