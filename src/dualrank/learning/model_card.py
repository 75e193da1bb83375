"""A model in a notebook: what it was trained with, what it learned, whether that gained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dualrank.evaluation.click_check import Lead
from dualrank.learning.leads import leads_of
from dualrank.propensity.curve_drawing import draw_examination
from dualrank.propensity.curve_words import short
from dualrank.propensity.propensity import SHOWN
from dualrank.sentences import counted, listed, start_of
from dualrank.showing.axes import edge, few_ticks, legend, palette_of, title
from dualrank.showing.card import card, facts, grid, said
from dualrank.showing.interval_rows import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.learning.model import Model

MOST_CONTEXTS = 4
"""More curves on one picture are not told apart."""


def method_of(model: Model) -> str:
    """The method that it was trained with."""
    return start_of(str(model.training.get("method", "unknown method")))


def model_card(model: Model) -> str:
    """What the model is, how it was trained, its examination curve and its lead."""
    try:
        parts = model_parts(model)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # How a model was trained is whatever its manifest says; a card is no place to refuse it.
        parts = [said("What it says of its training is not as dualrank writes it.")]
    return card("Model", about_model(model), *parts)


def about_model(model: Model) -> tuple[str, ...]:
    """What it is, in a few words."""
    return method_of(model), model.kind, counted(model.scaler.input_count, "features")


def model_parts(model: Model) -> list[Markup]:
    """What a card says of a model below its title."""
    training = model.training
    history = training.get("history") or {}
    reading = training.get("reading") or {}
    sessions = reading.get("kept") or (model.propensity.sessions if model.propensity else 0)
    known = {
        "features": listed(model.feature_names) if model.feature_names else "",
        "trained on": counted(int(sessions), "sessions") if sessions else "",
        "kept": _kept(history),
        "made of": _weights(training.get("auto") or {}),
    }
    parts = [facts(known)]
    if model.propensity is not None:
        curve = model.propensity.examination[:SHOWN]
        columns = ("position", *(str(k + 1) for k in range(len(curve))))
        parts.append(grid(columns, [("examination", *map(short, curve))]))
    if leads := leads_of(training):
        columns = ("lead over no correction", "gain", "standard errors", "")
        parts.append(grid(columns, [_lead(*each) for each in leads.items()], words=(0, 3)))
    parts.append(said(*(f"Warning: {text}." for text in training.get("warnings", []))))
    return parts


def draw_learned(ax: Axes, model: Model) -> None:
    """The examination that it was trained with, and that of its most frequent contexts."""
    assert model.propensity is not None
    curves = model.propensity.by_context
    most = sorted(curves, key=lambda name: -curves[name].sessions)[:MOST_CONTEXTS]
    draw_examination(ax, model.propensity, "all sessions" if most else model.propensity.method)
    for name in most:
        label = f"{name} ({counted(curves[name].sessions, 'sessions')})"
        draw_examination(ax, curves[name], label, lw=1)


def histories_of(training: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """How the ranker, and its naive twin, did on validation while they learned, as far as kept."""
    # The history of a sum is that of its largest part.
    weights = (training.get("auto") or {}).get("weights") or {str(training.get("method")): 1.0}
    found = {
        next(iter(weights)): training.get("history"),
        "naive twin": (training.get("twin") or {}).get("history"),
    }
    return {name: each for name, each in found.items() if each and len(each["steps"]) > 1}


def draw_training(ax: Axes, histories: dict[str, dict[str, Any]]) -> None:
    """Validation by step, and the ranker that was kept as a dot."""
    for (name, history), color in zip(histories.items(), ("blue", "green"), strict=False):
        look: dict[str, Any] = {"color": palette_of(ax)[color]}
        ax.plot(history["steps"], history["values"], lw=1.8, label=name, **look)
        ax.plot([history["best_step"]], [history["best_value"]], "o", ms=6, **look, **edge(ax))
    ax.set_xlabel("training steps")
    few_ticks(ax, "x")
    title(ax, "Validation (a dot: the ranker that was kept)")
    legend(ax, "best")


def _kept(history: dict[str, Any]) -> str:
    if not history.get("steps"):
        return ""
    return f"step {history['best_step']:,} of {history['steps'][-1]:,}"


def _weights(auto: dict[str, Any]) -> str:
    return ", ".join(f"{name} × {weight:.3g}" for name, weight in auto.get("weights", {}).items())


def _lead(name: str, lead: Lead) -> tuple[str, str, str, str]:
    word = "clear" if lead.is_clear else "clearly behind" if lead.is_behind else "not clear"
    return name, signed(lead.gain), signed(lead.in_errors, 1), word
