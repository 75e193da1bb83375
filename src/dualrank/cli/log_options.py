"""How a command reads a click log and features: the options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.terminal import one_bar
from dualrank.errors import SettingsError

if TYPE_CHECKING:
    from dualrank.data.click_log import ClickLog
    from dualrank.data.dataset import Dataset

Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="The click log: Parquet, CSV or JSON lines; a file, folder, pattern, or reduced log.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="The log's own name of a column: doc_id=item. Repeatable."),
]
Contexts = Annotated[
    list[str] | None,
    typer.Option("--context", help="A column whose values are counted apart. Repeatable."),
]
FirstPosition = Annotated[
    int, typer.Option(help="What the log's positions start with.", min=0, max=1)
]
MaxBadShare = Annotated[
    float, typer.Option(help="Leave bad sessions out, up to this share.", min=0, max=1)
]
MaxClicks = Annotated[int | None, typer.Option(help="Leave out sessions with more clicks.", min=1)]
MaxClientShare = Annotated[
    float | None,
    typer.Option(help="Leave out clients with more than this share of all clicks."),
]


def column_names(given: list[str] | None) -> dict[str, str]:
    """`doc_id=item` and its like as a dictionary."""
    names = {}
    for text in given or ():
        meaning, equals, name = text.partition("=")
        if not (meaning and equals and name):
            raise SettingsError(f"--column takes MEANING=NAME, such as doc_id=item, not {text!r}")
        names[meaning] = name
    return names


def open_features(
    path: Path,
    count: int | None = None,
    max_grade: float | None = None,
    names: Sequence[str] | None = None,
) -> Dataset:
    """Read features, of a model's `count` and `names` where it has some, with a bar."""
    from dualrank.data.features import read_features

    with one_bar(f"reading {path.name}") as report:
        return read_features(path, count=count, names=names, max_grade=max_grade, progress=report)


def open_log(
    log: str,
    dataset: Dataset | None = None,
    *,
    columns: list[str] | None = None,
    contexts: list[str] | None = None,
    first_position: int = 1,
    max_bad_share: float = 0.0,
    max_clicks: int | None = None,
    max_client_share: float | None = None,
) -> ClickLog:
    """Read a log as these options say, with a bar."""
    from dualrank.data.log.read_log import read_log

    with one_bar(f"reading {Path(log).name}"):
        return read_log(
            log,
            dataset,
            columns=column_names(columns),
            contexts=contexts or (),
            first_position=first_position,
            max_bad_share=max_bad_share,
            max_clicks=max_clicks,
            max_client_share=max_client_share,
        )
