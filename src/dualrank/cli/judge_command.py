"""`dualrank judge`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.options import Without
from dualrank.cli.outputs import NewFile
from dualrank.cli.terminal import Json, Log, Seed, answer, one_bar, open_log
from dualrank.data.log.log_options import LogOptions

if TYPE_CHECKING:
    from dualrank.data.click_log import ClickLog
    from dualrank.engines import Judgements


def judge(
    log: Log,
    out: Annotated[
        Path,
        typer.Option("--out", help="The file to write (.qrels, .json, .parquet, .csv)."),
        NewFile("a table of judgements"),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="trec, quepid, opensearch or table; without it, as the suffix says: .qrels is "
            "trec, .json opensearch, .parquet and .csv are tables with everything.",
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            help="clicks: corrected click-through; or a click model: pbm, ubm, dcm, dbn, "
            "dbn:attraction and the others of `dualrank clicks`.",
        ),
    ] = "clicks",
    propensity: Annotated[
        Path | None,
        typer.Option(
            "--propensity",
            help="Examination by position (JSON); without it, harvested from documents that the "
            "log shows at several positions.",
        ),
    ] = None,
    min_sessions: Annotated[
        int, typer.Option(help="Leave out pairs displayed in fewer sessions.", min=1)
    ] = 10,
    grades: Annotated[int, typer.Option(help="How many grades there are: 5 is 0 to 4.")] = 5,
    *,
    options: Annotated[LogOptions, Without("contexts", "event_kinds")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Judge query–document pairs by their clicks, for tools that evaluate rankings.

    Relevance is the probability of a click at the first position, read off by what was clicked and
    how likely each position is examined. Each pair has a 95% interval and the sessions behind it
    (in tables), and a whole-number grade; grades are cut where the least order is lost. OpenSearch
    takes the file with PUT _plugins/_search_relevance/judgments.

    Example: dualrank judge clicks.parquet --out judgements.qrels

    Example: dualrank judge clicks.parquet --to quepid --out ratings.csv --min-sessions 50
    """
    from dualrank.engines.judgement_files import format_of
    from dualrank.engines.judgements import check_options
    from dualrank.engines.judgements import judge as judge_pairs
    from dualrank.propensity import Propensity

    written_as = format_of(out, to)
    curve = None if propensity is None else Propensity.read(propensity)
    check_options(by=by, propensity=curve, min_sessions=min_sessions, grades=grades)
    if curve is not None and curve.context is not None:
        options = replace(options, contexts=(curve.context,))
    click_log = open_log(log, None, options)
    with one_bar("judging"):
        found = judge_pairs(
            click_log,
            by=by,
            propensity=curve,
            min_sessions=min_sessions,
            grades=grades,
            seed=seed,
        )
    found.write(out, written_as)
    content = {
        "file": str(out),
        "format": written_as,
        "by": found.by,
        "pairs": len(found),
        "queries": found.queries,
        "left_out": found.left_out,
        "grades": _per_grade(found),
        "examination": None if found.propensity is None else found.propensity.examination.tolist(),
    }
    answer(
        as_json,
        content,
        f"{out}: {len(found)} pairs of {found.queries} queries, by {found.by}; {found.left_out} "
        f"with fewer than {min_sessions} sessions left out",
        _shortened(found, click_log),
    )


def _per_grade(found: Judgements) -> list[int]:
    """How many pairs have each grade, from 0."""
    import numpy as np

    counts: list[int] = np.bincount(found.table["grade"], minlength=found.grades).tolist()
    return counts


def _shortened(found: Judgements, log: ClickLog) -> str | None:
    """That the curve ends before the lists do, and why."""
    curve = found.propensity
    if curve is None or curve.depth >= log.lists.depth:
        return None
    why = curve.details.get("ends", "the curve ends there")
    return f"positions from {curve.depth + 1} on are not counted: {why}"
