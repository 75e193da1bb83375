"""The report of a training run: what was learned, against its naive twin, and from what."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dualrank.data.log.reading_report import ReadingReport
from dualrank.diagnostics.diagnosis import Diagnosis
from dualrank.diagnostics.diagnosis_card import verdict_sentence
from dualrank.diagnostics.verdict import UNSEEN
from dualrank.evaluation.click_check import Lead
from dualrank.learning.leads import leads_of
from dualrank.learning.model import Model
from dualrank.learning.model_card import draw_learned, draw_training, histories_of
from dualrank.report.diagnosis_report import curves_exhibits
from dualrank.report.drawing import new_figure
from dualrank.report.reading_tables import left_out_table
from dualrank.report.sheet import Exhibit, Section, Sheet
from dualrank.report.table import Cell, Row, Table
from dualrank.sentences import counted
from dualrank.storage import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The fingerprint of the data stands in the manifest; people know the log by its name.
_SHOWN_ELSEWHERE = (
    *("data", "settings", "history", "reading", "twin", "auto", "stages", "warnings", "shards"),
)
_COUNTED = Markup(
    "Inverse weighting (DLA, IPW) counts a click at position <i>i</i> one divided by this number "
    "of times."
)
_UNPROVEN = Markup(
    "A gain on held-out clicks is not a gain on your users, and without judged queries any gain is "
    "unproven."
)
_WITH_TWIN = Markup(
    " <code>dualrank evaluate MODEL JUDGED --against MODEL/twin</code> compares model and twin on "
    "judged queries."
)
_ALONE = Markup(
    " <code>dualrank evaluate MODEL JUDGED --against OTHER</code> compares this model with another "
    "on judged queries."
)
_ASK_DIAGNOSE = Markup(
    " <code>dualrank diagnose LOG</code> says whether the log can carry the correction at all."
)


def write_training_report(
    model: Model,
    path: Path,
    diagnosis: Diagnosis | None = None,
    command: str = "",
    *,
    twin: bool = False,
) -> None:
    """Write the page for a model that was just trained, with a `twin` beside it or without."""
    write_text(path, training_sheet(model, diagnosis, command, twin=twin).html())


def training_sheet(
    model: Model, diagnosis: Diagnosis | None = None, command: str = "", *, twin: bool = False
) -> Sheet:
    """The model with its manifest, and what its log can be trusted with."""
    training = model.training
    curves, auto = curves_of(model), "auto" in training
    sections = [Section("Figures", exhibits=_exhibits(model))]
    if (parts := _parts_table(training.get("auto", {}))) is not None:
        sections.append(Section("What it is made of", table=parts))
    if curves:
        sections.append(Section("Examination", table=_curves_table(curves), note=_COUNTED))
    if diagnosis is not None:
        sections.append(
            Section(
                "Can this log be trusted?",
                # What no clicks show is said in the verdict of auto.
                " ".join(each for each in diagnosis.reasons if each != UNSEEN or not auto),
                lead=verdict_sentence(diagnosis),
                exhibits=curves_exhibits(diagnosis),
                points=diagnosis.points,
            )
        )
    unproven = _UNPROVEN + (_WITH_TWIN if twin and not _is_naive(training) else _ALONE)
    if diagnosis is None:
        unproven += _ASK_DIAGNOSE
    return Sheet(
        "A ranker learned from clicks",
        summary=_summary(model),
        verdict=training_verdict(training),
        sections=(
            *sections,
            _left_out(training.get("reading")),
            Section("What this does not show", unproven),
        ),
        settings=_named(training.get("reading"))
        | {
            key: value
            for key, value in {**training, **training.get("settings", {})}.items()
            if key not in _SHOWN_ELSEWHERE
        },
        command=command,
        version=training.get("version", ""),
        numbers="manifest.json" + " and diagnosis.json" * (diagnosis is not None),
    )


def _named(reading: dict[str, Any] | None) -> dict[str, Any]:
    """What the log is called."""
    return {"data": reading["source"]} if reading and reading.get("source") else {}


def _summary(model: Model) -> str:
    training = model.training
    parts = [str(training.get("method")), str(training.get("ranker"))]
    parts.append(f"{model.scaler.input_count} features")
    if training.get("reading"):
        parts.append(f"{ReadingReport.from_dict(training['reading']).kept:,} sessions")
    return " · ".join(parts)


def training_verdict(training: dict[str, Any]) -> list[str]:
    """Whether the correction is worth something, as far as this run can tell."""
    warnings = [f"Warning: {text}." for text in training.get("warnings", [])]
    return _comparison(training) + _sampled(training.get("shards")) + warnings


def _sampled(shards: dict[str, Any] | None) -> list[str]:
    """Of a log in shards, what was looked at besides the steps of training."""
    if shards is None or shards["sampled_sessions"] == shards["sessions"]:
        return []
    return [
        f"Compared, checked and diagnosed by a sample of the {counted(shards['count'], 'shards')}: "
        f"{shards['sampled_sessions']:,} of {shards['sessions']:,} sessions, "
        f"{shards['held_out_sessions']:,} of them held out; trained on all others."
    ]


def _comparison(training: dict[str, Any]) -> list[str]:
    found = training.get("twin") or training.get("auto")
    if found is None:
        return ["This model was not compared with a ranker without correction."]
    method = training["method"]
    if "auto" in training:
        made = "Made of" if found.get("weights") else "Chosen among the candidates:"
        return [f"{made} {found['chosen']}.", _sentence(found["why"])]
    leads = leads_of(training)
    if not leads:
        return ["The gain of the correction is unproven.", _sentence(found["why"])]
    lead = next(iter(leads.values()))
    size = f"{abs(lead.in_errors):.1f} standard errors over {counted(lead.queries, 'queries')}"
    if lead.is_behind:
        first = f"The naive twin does better than {method}, by {size}: the correction harms."
    elif lead.is_clear:
        first = f"{method} does better than its naive twin, by {size}."
    else:
        side = "ahead of" if lead.gain > 0 else "behind"
        first = f"{method} is not clearly ahead of its naive twin ({side} it by {size})."
    return [first, _sentence(found["why"])]


def _is_naive(training: dict[str, Any]) -> bool:
    """Whether the model is its own twin: clicks spoke for no correction."""
    return bool(training.get("auto", {}).get("chosen") == "naive")


def curves_of(model: Model) -> dict[str, list[float]]:
    """The examination curve that the model was trained with, and those of its contexts."""
    if model.propensity is None:
        return {}
    curves = {"all sessions": model.propensity.examination.tolist()}
    for name, held in model.propensity.details.get("contexts", {}).items():
        curves[f"{name} ({held['sessions']:,} sessions)"] = held["examination"]
    return curves


def _parts_table(auto: dict[str, Any]) -> Table | None:
    """How far each candidate of auto is ahead of the naive ranker, and whether it is in the sum."""
    weights, leads = auto.get("weights", {}), leads_of({"auto": auto})
    if not weights or not leads:
        return None
    found = {"naive": Lead(0.0, 0.0, 0, 0)} | leads
    names = sorted(found, key=lambda name: found[name].gain)
    rows = [
        Row(name, (Cell(found[name].in_errors, decimals=1), _part(name, weights))) for name in names
    ]
    return Table(
        ("lead over naive", "in the sum"),
        tuple(rows),
        corner="ranker",
        words=("in the sum",),
        remark="The lead is how much better a ranker predicts held-out clicks, in standard errors.",
    )


def _part(name: str, weights: dict[str, float]) -> str:
    if name == "auto":
        return "the sum"
    return "yes" if name in weights else "no"


def _exhibits(model: Model) -> tuple[Exhibit, ...]:
    learning = "How the rankers improve while they learn."
    measure = (model.training.get("history") or {}).get("measure")
    if measure:
        learning += f" The height is the {measure}."
    if isinstance(model.training.get("validation"), float):
        learning += (
            " Each is valued on held-out clicks by what its own method believes: compare the "
            "shapes of the lines, not their heights; what compares methods stands above."
        )
    return (
        Exhibit(
            "examination",
            partial(examination_figure, model),
            "How likely users look at a position, relative to the first one.",
        ),
        Exhibit("learning", partial(learning_figure, model.training), learning),
    )


def _curves_table(curves: dict[str, list[float]]) -> Table:
    depth = max(len(curve) for curve in curves.values())
    rows = []
    for name, curve in curves.items():
        missing = [None] * (depth - len(curve))
        rows.append(Row(name, (*map(Cell, curve), *missing)))
    columns = tuple(str(position) for position in range(1, depth + 1))
    return Table(columns, tuple(rows), corner="Relative to the first position")


def examination_figure(model: Model) -> Figure | None:
    """The curve, and those of the most frequent contexts."""
    if model.propensity is None:
        return None
    figure, (ax,) = new_figure(1)
    draw_learned(ax, model)
    return figure


def learning_figure(training: dict[str, Any]) -> Figure | None:
    """The validation curve of the model and of its twin."""
    shown = histories_of(training)
    if not shown:
        return None
    figure, (ax,) = new_figure(1)
    draw_training(ax, shown)
    return figure


def _left_out(reading: dict[str, Any] | None) -> Section:
    title = "What was left out of the log"
    if reading is None:
        return Section(title, "How the log was read is not recorded: it was made in memory.")
    found = ReadingReport.from_dict(reading)
    text = (
        f"{found.source}: {found.rows:,} rows, {found.sessions:,} sessions, of which "
        f"{found.kept:,} were kept, with {found.clicks:,} clicks."
    )
    return Section(title, text, table=left_out_table(found))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
