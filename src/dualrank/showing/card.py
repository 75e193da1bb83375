"""Cards: what an object says of itself in a notebook, as HTML that needs nothing but itself.

A notebook may be light or dark, and may take style sheets away. So every element brings its style,
text has the colour of the notebook, lines are a grey that shows on both, and the colours of a
status stand beside its word, never for it. Whatever comes from data is text: it is escaped, and
what would turn lines around or forge them is written out.

>>> print(said("<script>"))
<div style="margin:.3em 0;max-width:60em">&lt;script&gt;</div>
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from markupsafe import Markup

from dualrank.sentences import counted
from dualrank.showing.visible import visible

LINE = "1px solid rgba(128,128,128,.35)"
# Between the light and the dark ones of the palette: seen on both kinds of paper.
MARKS = {"good": "#10a37a", "warning": "#d29922", "failed": "#e5603b", "none": "#8b949e"}
MOST_ROWS = 60
"""More rows are not read; that there are more is said."""

_CARD = Markup(
    '<div style="font-size:.92em;line-height:1.45;border:{line};border-radius:6px;'
    'padding:.6em .9em;margin:.3em 0;display:inline-block;max-width:100%;box-sizing:border-box">'
    "{head}{parts}</div>"
)
_TITLE = Markup('<div style="font-weight:600">{}{}</div>')
_ABOUT = Markup('<span style="font-weight:400;opacity:.75"> · {}</span>')
_SAID = Markup('<div style="margin:.3em 0;max-width:60em{more}">{text}</div>')
_TABLE = Markup(
    '<div style="overflow-x:auto;margin:.35em 0"><table style="border-collapse:collapse;'
    'border:0;margin:0;font-size:1em;background:transparent">{head}<tbody>{body}</tbody></table>'
    "</div>"
)
_HEAD = Markup('<thead><tr style="background:transparent">{}</tr></thead>')
_ROW = Markup('<tr style="background:transparent{more}">{cells}</tr>')
_MARK = Markup('<span style="color:{}" aria-hidden="true">●</span> {}')


def card(title: str, about: Iterable[str] = (), *parts: Markup) -> str:
    """A card: its title, what is known `about` the object on one line, and what stands below."""
    known = Markup("").join(_ABOUT.format(_text(each)) for each in about if each)
    head = _TITLE.format(_text(title), known) if title or known else Markup("")
    return str(_CARD.format(line=LINE, head=head, parts=Markup("").join(parts)))


def said(*sentences: str, aside: bool = False) -> Markup:
    """Sentences, one under the other; what is said `aside` is smaller and paler."""
    more = Markup(";opacity:.75;font-size:.93em") if aside else Markup("")
    return Markup("").join(_SAID.format(more=more, text=_text(each)) for each in sentences if each)


def facts(known: Mapping[str, str | Markup]) -> Markup:
    """Names with their values, one under the other."""
    return grid((), [(name, value) for name, value in known.items() if value], words=(0, 1))


def grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Markup]],
    *,
    words: Collection[int] = (0,),
    strong: Collection[int] = (),
) -> Markup:
    """A table: numbers at the right, the columns `words` at the left and wrapped; `strong` rows.

    Of many rows the first are shown.
    """
    head = Markup("")
    if columns:
        cells = (_cell("th", name, i in words, "600;opacity:.75") for i, name in enumerate(columns))
        head = _HEAD.format(Markup("").join(cells))
    body = [
        _ROW.format(
            more=Markup(f";border-top:{LINE}") if columns or number else Markup(""),
            cells=Markup("").join(
                _cell("td", cell, i in words, "600" if number in strong else "400")
                for i, cell in enumerate(row)
            ),
        )
        for number, row in enumerate(rows[:MOST_ROWS])
    ]
    table = _TABLE.format(head=head, body=Markup("").join(body))
    hidden = len(rows) - MOST_ROWS
    return (
        table + said(f"… and {counted(hidden, 'more rows')}.", aside=True) if hidden > 0 else table
    )


def marked(kind: str, word: str) -> Markup:
    """A word beside the mark of its kind, one of `MARKS`."""
    return _MARK.format(MARKS.get(kind, MARKS["none"]), _text(word))


def bolder(text: str) -> Markup:
    """Text that is meant to be seen first."""
    return Markup("<b>{}</b>").format(_text(text))


def _cell(tag: str, content: str | Markup, is_word: bool, weight: str) -> Markup:
    side, wraps = ("left", "normal") if is_word else ("right", "nowrap")
    style = (
        f"text-align:{side};white-space:{wraps};vertical-align:top;padding:.15em .6em .15em 0;"
        f"border:0;font-weight:{weight};max-width:42em;overflow-wrap:break-word"
    )
    return Markup('<{0} style="{1}">{2}</{0}>').format(Markup(tag), style, _text(content))


def _text(value: str | Markup) -> Markup:
    """Text of the data as HTML that says just that; `Markup` is ours."""
    return value if isinstance(value, Markup) else Markup.escape(visible(value))
