"""A diagnosis for people: in the terminal, and as a page that needs nothing but itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dualrank.diagnostics.diagnosis import Diagnosis
from dualrank.diagnostics.diagnosis_card import curves_of, verdict_sentence
from dualrank.report.figures import estimates_figure
from dualrank.report.sheet import Exhibit, Section, Sheet
from dualrank.storage import write_text


def diagnosis_sheet(diagnosis: Diagnosis, name: str) -> Sheet:
    """The verdict on a log of this name with its reasons, then every point."""
    return Sheet(
        f"Diagnosis of {name}",
        verdict=tuple(
            filter(None, (verdict_sentence(diagnosis), *diagnosis.reasons, diagnosis.looked_at))
        ),
        sections=(
            Section("Examination", exhibits=curves_exhibits(diagnosis)),
            Section("Points", points=diagnosis.points),
        ),
        numbers="diagnosis.json",
    )


def write_diagnosis(diagnosis: Diagnosis, directory: Path, name: str) -> list[Path]:
    """`diagnosis.json` and `diagnosis.html`."""
    written = [directory / "diagnosis.html", directory / "diagnosis.json"]
    write_text(written[0], diagnosis_sheet(diagnosis, name).html())
    write_text(written[1], diagnosis.to_json())
    return written


def curves_exhibits(diagnosis: Diagnosis) -> tuple[Exhibit, ...]:
    """Examination by every method that the log allows, one figure at most."""
    curves = curves_of(diagnosis)
    if not curves:
        return ()
    caption = (
        "How likely each position is examined, relative to the first: as raw click-through has "
        "it, and as the log allows to estimate it. Bars are 95% intervals."
    )
    return (Exhibit("curves", partial(estimates_figure, curves), caption),)
