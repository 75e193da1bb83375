"""`dualrank plan-swaps`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualrank.cli.options import Without
from dualrank.cli.outputs import SWAP_PLAN
from dualrank.cli.terminal import (
    Json,
    Log,
    Seed,
    one_bar,
    open_log,
    print_json,
    result_console,
    typed_command,
)
from dualrank.data.log.log_options import LogOptions
from dualrank.errors import SettingsError
from dualrank.sentences import shortened


def plan_swaps(
    log: Log,
    precision: Annotated[
        str,
        typer.Option(
            "--precision", help="How well every position of the curve is to be known: 10% or 0.1."
        ),
    ] = "10%",
    share: Annotated[
        str, typer.Option("--share", help="The share of sessions that may show another order.")
    ] = "5%",
    positions: Annotated[
        int | None,
        typer.Option(
            "--positions",
            help="Plan for so many positions from the top; without it, all that were clicked.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The directory for report.html, the figure and plan.json."),
        SWAP_PLAN,
    ] = None,
    *,
    options: Annotated[LogOptions, Without("contexts", "event_kinds")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Plan an experiment that measures how likely each position is examined.

    Says which results to swap, in what share of sessions and for how long, until the 95% interval
    of every position is as narrow as --precision asks; and what that costs in clicks. Three designs
    are compared: the first result with each of the others, neighbours, and full shuffles.

    Example: dualrank plan-swaps clicks.parquet --precision 10%

    Example: dualrank plan-swaps clicks.parquet --precision 20% --share 2% --out plan/
    """
    from dualrank.propensity.swap_planning import check_goal
    from dualrank.propensity.swap_planning import plan_swaps as plan
    from dualrank.report import swap_plan_sheet, write_swap_plan

    goal = {"precision": as_share("precision", precision), "share": as_share("share", share)}
    check_goal(**goal, positions=positions)
    click_log = open_log(log, None, options)
    with one_bar("planning"):
        found = plan(click_log, **goal, positions=positions, seed=seed)
    sheet = swap_plan_sheet(found, Path(log).name, typed_command())
    written = [] if out is None else write_swap_plan(found, out, sheet)
    if as_json:
        print_json(found.to_dict())
    else:
        sheet.show(result_console(), written)


def as_share(name: str, text: str) -> float:
    """A share that was typed as a percentage or as a number.

    >>> as_share("precision", "10%"), as_share("share", " 0.05 ")
    (0.1, 0.05)
    """
    number = text.strip().removesuffix("%")
    try:
        # Python reads 1_0 as a number, and so it reads nan, of which no comparison holds.
        value = float(number.replace("_", "?"))
    except ValueError as error:
        raise SettingsError(
            f"--{name} takes a percentage such as 10%, or a share such as 0.1, not "
            f"{shortened(text)}"
        ) from error
    return value / 100 if text.strip().endswith("%") else value
