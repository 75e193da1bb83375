"""Text that comes from data, as a terminal may be given it: nothing in it is a command.

Ids, titles, names of files and of columns may hold anything. Written as they are, a line feed in
them would forge a line, ESC would move the cursor or set the title of the window, and a bidi
override would turn the rest of the line around. JSON and files keep the data as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dualrank.sentences import LONGEST_VALUE, start_of

if TYPE_CHECKING:
    from rich.text import Text

# Control characters (C0, DEL, C1), marks and overrides of direction, separators of lines, signs
# without width but for the joiners that scripts need, and halves of surrogate pairs.
_NOT_TEXT = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""The text with what a terminal would obey written out, as Python would write it.

    >>> print(visible("shoes\x1b[31m\n[red]\u202e"))
    shoes\x1b[31m\n[red]\u202e
    """
    return _NOT_TEXT.sub(_written_out, text)


def one_line(text: str, longest: int = LONGEST_VALUE) -> str:
    r"""Text of the data on one line of a `repr`: visible, the end of a long one left out.

    >>> print(one_line("shoes\x1b[31m\nand more", longest=12))
    shoes\x1b[31m a…
    """
    return visible(start_of(text, longest))


def plain(text: str, style: str = "") -> Text:
    """Visible text for rich, in which square brackets are square brackets."""
    from rich.text import Text

    return Text(visible(text), style)


def _written_out(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
