"""`--event KIND=WEIGHT`: what an event is worth, for commands that weigh them."""

from __future__ import annotations

from typing import Annotated

import typer

from dualrank.errors import SettingsError

Events = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        metavar="KIND=WEIGHT",
        help="What an event is worth: click=1, purchase=5. Repeatable; a click is 1 unless said.",
    ),
]


def weights_of(texts: list[str] | None) -> dict[str, float] | None:
    """Kinds of events with what each is worth.

    >>> weights_of(["click=1", "purchase=5"])
    {'click': 1.0, 'purchase': 5.0}
    """
    weights = {}
    for text in texts or ():
        kind, _, weight = text.rpartition("=")
        try:
            weights[kind] = float(weight)
        except ValueError:
            kind = ""
        if not kind:
            raise SettingsError(f"--event takes KIND=WEIGHT, such as purchase=5, not {text!r}")
    return weights or None
