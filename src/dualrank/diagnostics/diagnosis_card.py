"""A diagnosis in a notebook: the verdict and every point, as a card and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualrank.diagnostics.point import SEVERITY
from dualrank.propensity.propensity import Propensity
from dualrank.showing.axes import edge, name_rows, palette_of, title
from dualrank.showing.card import card, grid, marked, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.diagnostics.diagnosis import Diagnosis

# The names under which the curves are known as estimates.
_CURVES = {"raw": "click-through", "harvested": "harvest-all-pairs", "learned": "dla"}
_LOOKS = {
    "not measured": ("gray", "."),
    "good": ("green", "o"),
    "warning": ("orange", "D"),
    "failed": ("vermilion", "X"),
}


def verdict_sentence(diagnosis: Diagnosis) -> str:
    """The verdict as a sentence."""
    return f"{diagnosis.verdict[0].upper()}{diagnosis.verdict[1:]}."


def diagnosis_card(diagnosis: Diagnosis) -> str:
    """The verdict, why, and what was found of every point."""
    rows = [
        (
            point.name,
            marked(point.status, point.status),
            f"{point.meaning} {point.advice}".strip(),
        )
        for point in diagnosis.points
    ]
    counts = [
        f"{sum(point.status == status for point in diagnosis.points)} {status}"
        for status in reversed(SEVERITY)
    ]
    return card(
        verdict_sentence(diagnosis),
        counts,
        said(*diagnosis.reasons),
        grid(("point", "", "what it means"), rows, words=(0, 1, 2)),
        said(diagnosis.looked_at or "", aside=True),
    )


def draw_points(ax: Axes, diagnosis: Diagnosis) -> None:
    """Every point on its row, the further right the worse."""
    colors = palette_of(ax)
    upwards = list(reversed(diagnosis.points))
    for y, point in enumerate(upwards):
        place, (color, marker) = SEVERITY.index(point.status), _LOOKS[point.status]
        ax.plot([place], [y], marker, color=colors[color], ms=9, **edge(ax))
    name_rows(ax, [point.name for point in upwards])
    ax.set_xticks(range(len(SEVERITY)), SEVERITY)
    ax.set_xlim(-0.6, len(SEVERITY) - 0.4)
    title(ax, verdict_sentence(diagnosis))


def curves_of(diagnosis: Diagnosis) -> dict[str, Propensity]:
    """Examination by every method that the log allows, and raw click-through."""
    numbers = diagnosis["curves"].numbers
    return {
        method: Propensity(
            numbers[name]["examination"],
            method,
            low=numbers[name]["low"],
            high=numbers[name]["high"],
        )
        for name, method in _CURVES.items()
        if name in numbers
    }
