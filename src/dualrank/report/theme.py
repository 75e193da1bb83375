"""SVG that follows the palette of its reader, light or dark.

Figures are drawn in the light colours. Afterwards each of these colours is a name: in a file,
a style sheet inside the SVG exchanges them where the reader prefers dark; inside the page they
become the page's own variables. So one drawing looks right everywhere, and a viewer that knows
nothing of this shows the light one.
"""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING

from dualrank.showing.palette import DARK, FONT
from dualrank.showing.palette import LIGHT as LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def css_variables(palette: dict[str, str]) -> str:
    """The palette as CSS declarations."""
    return "".join(f"--{name}:{color};" for name, color in palette.items())


def svg_file(figure: Figure) -> str:
    """The figure as an SVG file: transparent, the same bytes every time, light and dark."""
    rules = "".join(
        f'[style*="{kind}: {color}"]{{{kind}:{DARK[name]} !important}}'
        for name, color in LIGHT.items()
        for kind in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda tag: tag[1] + style, _svg(figure), count=1)


def svg_inline(figure: Figure, name: str, label: str) -> str:
    """The figure as an `<svg>` element for the page, in the page's variables.

    `name` keeps its ids apart from those of other figures; `label` is read out to people who
    cannot see it.
    """
    svg = _svg(figure)
    view = re.search(r'viewBox="([^"]*)"', svg)
    inside = svg[svg.index(">") + 1 :]
    inside = re.sub(r"<style.*?</style>", "", inside, flags=re.DOTALL)
    inside = re.sub(r'\bid="', f'id="{name}-', inside)
    inside = re.sub(r"url\(#", f"url(#{name}-", inside)
    inside = re.sub(r'xlink:href="#', f'href="#{name}-', inside)
    for variable, color in LIGHT.items():
        inside = inside.replace(f": {color}", f": var(--{variable})")
    across = float(view[1].split()[2]) if view else 0.0
    return (
        f'<svg viewBox="{view[1] if view else ""}" style="--across:{across:.0f}" role="img" '
        f'aria-label="{html.escape(label)}">{inside}'
    )


def png(figure: Figure) -> bytes:
    """The figure as a PNG on white paper, the same bytes every time."""
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="png", dpi=160, facecolor=LIGHT["paper"], metadata={"Software": None}
    )
    return buffer.getvalue()


def _svg(figure: Figure) -> str:
    from matplotlib import rc_context

    buffer = io.StringIO()
    nothing = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    with rc_context({"svg.hashsalt": "dualrank", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    # Laid out with the font that matplotlib brings, shown in the reader's own, which is narrower.
    svg = re.sub(r"'DejaVu Sans'(, [^;\"]*)?", FONT, buffer.getvalue())
    return svg[svg.index("<svg") :]
