"""The report of a training run: what was learned, against its naive twin, and from what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from dualrank.data.log.reading_report import ReadingReport
from dualrank.diagnostics.diagnosis import Diagnosis
from dualrank.evaluation.click_check import CLEAR, Lead
from dualrank.learning.model import Model
from dualrank.report.diagnosis_page import curves_drawing, in_words
from dualrank.report.drawing import EDGE, LEGEND, few_ticks, new_figure, plain, title
from dualrank.report.page import Drawing, described, render
from dualrank.report.theme import LIGHT, svg_inline
from dualrank.storage import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = (("blue", "o"), ("vermilion", "s"), ("green", "^"), ("purple", "d"), ("orange", "P"))


def write_training_report(
    model: Model, path: Path, diagnosis: Diagnosis | None = None, command: str = ""
) -> None:
    """Write the page for a model that was just trained."""
    write_text(path, render_training(model, diagnosis, command))


def render_training(model: Model, diagnosis: Diagnosis | None = None, command: str = "") -> str:
    """The page as HTML: the model with its manifest, and what its log can be trusted with."""
    training = model.training
    reading = training.get("reading")
    curves = curves_of(model)
    settings = {
        key: value
        for key, value in {**training, **training.get("settings", {})}.items()
        if key not in ("settings", "history", "reading", "twin", "auto", "version")
    }
    return render(
        "training.html",
        title="A ranker learned from clicks",
        summary=" · ".join(_summary(model)),
        verdict=verdict(training),
        drawings=_drawings(model),
        diagnosis=None if diagnosis is None else in_words(diagnosis),
        by_method=None if diagnosis is None else curves_drawing(diagnosis),
        curves=[(name, [f"{each:.3f}" for each in curve]) for name, curve in curves.items()],
        positions=range(1, 1 + max((len(curve) for curve in curves.values()), default=0)),
        reading=None if reading is None else _reading(ReadingReport.from_dict(reading)),
        settings=described(settings),
        version=training.get("version"),
        command=command,
    )


def _summary(model: Model) -> list[str]:
    training = model.training
    told = [str(training.get("method")), str(training.get("ranker"))]
    told.append(f"{model.scaler.input_count} features")
    if training.get("reading"):
        told.append(f"{ReadingReport.from_dict(training['reading']).kept:,} sessions")
    return told


def verdict(training: dict[str, Any]) -> list[str]:
    """Whether the correction is worth something, as far as this run can tell."""
    found = training.get("twin") or training.get("auto")
    if found is None:
        return ["This model was not compared with a ranker without correction."]
    method = training["method"]
    if "auto" in training:
        return [f"Chosen among the candidates: {found['chosen']}.", f"{_sentence(found['why'])}"]
    leads = {name: Lead(**lead) for name, lead in found.get("leads", {}).items()}
    if not leads:
        return ["The gain of the correction is unproven.", _sentence(found["why"])]
    lead = next(iter(leads.values()))
    size = f"{abs(lead.in_errors):.1f} standard errors over {lead.queries} queries"
    if lead.in_errors < -CLEAR:
        first = f"The naive twin does better than {method}, by {size}: here the correction harms."
    elif lead.is_clear:
        first = f"{method} does better than its naive twin, by {size}."
    else:
        side = "ahead of" if lead.gain > 0 else "behind"
        first = f"{method} is not clearly ahead of its naive twin ({side} it by {size})."
    return [first, _sentence(found["why"])]


def curves_of(model: Model) -> dict[str, list[float]]:
    """The examination curve that the model was trained with, and those of its contexts."""
    if model.propensity is None:
        return {}
    curves = {"all sessions": model.propensity.examination.tolist()}
    for name, held in model.propensity.details.get("contexts", {}).items():
        curves[f"{name} ({held['sessions']:,} sessions)"] = held["examination"]
    return curves


def _drawings(model: Model) -> list[Drawing]:
    found = {
        "examination": (
            examination_figure(curves_of(model)),
            "How likely users look at a position, relative to the first one.",
        ),
        "learning": (
            learning_figure(model.training),
            "How the rankers improve while they learn."
            + " Each is valued on held-out clicks with its own weights: compare the shapes of the "
            "lines, not their heights." * isinstance(model.training.get("validation"), float),
        ),
    }
    return [
        Drawing(Markup(svg_inline(figure, name, caption)), caption)
        for name, (figure, caption) in found.items()
        if figure is not None
    ]


def examination_figure(curves: dict[str, list[float]]) -> Figure | None:
    """The curve, and those of the most frequent contexts."""
    if not curves:
        return None
    figure, (ax,) = new_figure(1)
    for (name, curve), (color, marker) in zip(curves.items(), LOOKS, strict=False):
        x = np.arange(1, len(curve) + 1)
        ax.plot(
            x, curve, color=LIGHT[color], marker=marker, lw=1.8, ms=5, label=plain(name), **EDGE
        )
    ax.set_ylim(0, None)
    ax.set_xlabel("position")
    ax.locator_params(axis="x", integer=True, nbins=10)
    title(ax, "Examination, relative to position 1")
    if len(curves) > 1:
        ax.legend(loc="upper right", **LEGEND)
    return figure


def learning_figure(training: dict[str, Any]) -> Figure | None:
    """The validation curve of the model and of its twin."""
    histories = {
        str(training.get("method")): training.get("history"),
        "naive twin": (training.get("twin") or {}).get("history"),
    }
    shown = {name: each for name, each in histories.items() if each and len(each["steps"]) > 1}
    if not shown:
        return None
    figure, (ax,) = new_figure(1)
    for (name, history), color in zip(shown.items(), ("blue", "green"), strict=False):
        ax.plot(history["steps"], history["values"], color=LIGHT[color], lw=1.8, label=name)
        ax.plot(
            [history["best_step"]], [history["best_value"]], "o", color=LIGHT[color], ms=6, **EDGE
        )
    ax.set_xlabel("training steps")
    few_ticks(ax, "x")
    title(ax, "Validation (a dot: the ranker that was kept)")
    ax.legend(loc="best", **LEGEND)
    return figure


def _reading(reading: ReadingReport) -> dict[str, Any]:
    return {
        "summary": f"{reading.source}: {reading.rows:,} rows, {reading.sessions:,} sessions, of "
        f"which {reading.kept:,} were kept, with {reading.clicks:,} clicks.",
        "rows": reading.table(),
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
