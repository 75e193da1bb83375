"""Judgement lists from clicks: the relevance of query–document pairs, as evaluation tools take it.

Clicks say little about what stands low on the page and much about what stands high. Relevance is
therefore read off by *corrected click-through* (`propensity.corrected_click_through`), which knows
how likely each position is examined, or by a click model (`clicks.models`), which has its own
account of what users look at. Without a curve, corrected click-through harvests one from the
documents that the log shows at several positions (`harvest-all-pairs`): of the estimators that need
no features it is the one that stays right however few impressions each pair has.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.clicks.models.counting import require_skips
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.models.registry import MODELS
from dualrank.data.click_log import ClickLog
from dualrank.data.inputs import log_from
from dualrank.engines.grades import GRADES, check_grades, cut_into_grades
from dualrank.engines.judgement_files import format_of, write_judgements
from dualrank.errors import DataError, SettingsError
from dualrank.learning.extracted_relevance import label_of_model, model_of_label
from dualrank.propensity.corrected_click_through import corrected_click_through
from dualrank.propensity.estimators import estimate
from dualrank.propensity.pair_counts import PairCounts
from dualrank.propensity.propensity import Propensity
from dualrank.sentences import counted, start_of
from dualrank.showing.card import card, grid, said
from dualrank.showing.visible import one_line

CLICKS = "clicks"
"""Relevance by corrected click-through; any other way is the label of a click model."""
ESTIMATOR = "harvest-all-pairs"
MIN_SESSIONS = 10
FIRST = 5
"""Pairs that a card shows."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """Judged pairs, best first in each query, and how they were judged.

    `table` has query_id, doc_id, relevance from 0 to 1, low and high (its 95% interval), sessions
    (that displayed the pair) and grade (whole numbers from 0). By clicks, relevance is the
    probability of a click at the first position, and `propensity` the curve that it was corrected
    with. `left_out` pairs had too few sessions.
    """

    table: pa.Table
    by: str
    grades: int
    left_out: int
    propensity: Propensity | None = None

    def __repr__(self) -> str:
        return f"Judgements({len(self)} pairs of {self.queries} queries, by {one_line(self.by)})"

    def _repr_html_(self) -> str:
        """A card for notebooks: how pairs were judged, how many have each grade, the first few."""
        grades = np.bincount(self.table["grade"].to_numpy(), minlength=self.grades)
        first = self.table.slice(0, FIRST).to_pylist()
        rows = [
            (
                start_of(row["query_id"]),
                start_of(row["doc_id"]),
                f"{row['relevance']:.3f}",
                f"{row['low']:.3f} to {row['high']:.3f}",
                f"{row['sessions']:,}",
                str(row["grade"]),
            )
            for row in first
        ]
        columns = ("query_id", "doc_id", "relevance", "95% interval", "sessions", "grade")
        by = "corrected click-through" if self.by == CLICKS else start_of(self.by)
        more = len(self) - len(first)
        return card(
            "Judgements",
            (counted(len(self), "pairs"), counted(self.queries, "queries"), f"by {by}"),
            grid(
                ("grade", *map(str, range(len(grades)))),
                [("pairs", *(f"{count:,}" for count in grades))],
            ),
            grid(columns, rows, words=(0, 1)),
            said(f"… and {counted(more, 'more pairs')} in .table." if more else "", aside=True),
            said(
                f"{counted(self.left_out, 'pairs')} with too few sessions left out."
                if self.left_out
                else "",
                aside=True,
            ),
        )

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def queries(self) -> int:
        """How many queries have a judged document."""
        return len(self.table["query_id"].unique())

    def write(self, path: str | Path, to: str | None = None) -> None:
        """Write as TREC qrels, for Quepid or OpenSearch, or as a table with everything.

        `to` is one of `FORMATS`; without it the suffix of the name tells: .qrels, .json
        (OpenSearch), .parquet and .csv (the table).
        """
        write_judgements(self.table, Path(path), format_of(Path(path), to), by=self.by)


def judge(
    log: ClickLog | Any,
    *,
    by: str = CLICKS,
    propensity: Propensity | None = None,
    min_sessions: int = MIN_SESSIONS,
    grades: int = GRADES,
    seed: int = 0,
) -> Judgements:
    """The relevance of every pair of a log that was displayed in `min_sessions` sessions or more.

    `by` is `clicks`, with the examination of `propensity` or one that is harvested from the log, or
    a click model (`ubm`, `dbn`, `dbn:attraction` …). Relevance is cut into whole-number grades
    where the least order is lost. The log may be a file or a data frame.
    """
    check_options(by=by, propensity=propensity, min_sessions=min_sessions, grades=grades)
    log = log_from(log)
    if log.catalogue is None:
        raise DataError("this log does not know the names of its documents")
    require_skips(log)
    if by != CLICKS:
        return _by_click_model(log, by, min_sessions, grades)
    curve = _harvested(log, seed) if propensity is None else propensity
    counts = PairCounts.of(log, curve)
    kept = _with_sessions(counts.sessions, min_sessions)
    found = corrected_click_through(counts.take(kept), log.catalogue.query_of_document[kept])
    left_out = int((counts.sessions > 0).sum()) - len(kept)
    table = _table(log, kept, found, counts.sessions[kept], grades)
    return Judgements(table, by, grades, left_out, curve)


def check_options(
    *, by: str, propensity: Propensity | None, min_sessions: int, grades: int
) -> None:
    """Refuse what `judge` cannot do, before a log is read."""
    check_grades(grades)
    if min_sessions < 1:
        raise SettingsError(f"min_sessions is 1 or more, not {min_sessions}")
    if by != CLICKS and by.partition(":")[0] not in MODELS:
        raise SettingsError(
            f"pairs are judged by=clicks or by a click model, not by {by!r}; click models are "
            f"{', '.join(MODELS)}"
        )
    if by != CLICKS and propensity is not None:
        raise SettingsError(
            f"the click model {by} has its own account of examination; leave out propensity="
        )


def _by_click_model(log: ClickLog, by: str, min_sessions: int, grades: int) -> Judgements:
    model = model_of_label(by).fit(log)
    found, sessions = label_of_model(model, by), model.fitted.observations
    kept = _with_sessions(sessions, min_sessions)
    chosen = PairParameter(found.values[kept], found.low[kept], found.high[kept], found.unseen)
    left_out = int((sessions > 0).sum()) - len(kept)
    return Judgements(_table(log, kept, chosen, sessions[kept], grades), by, grades, left_out)


def _harvested(log: ClickLog, seed: int) -> Propensity:
    try:
        return estimate(log, ESTIMATOR, seed=seed)
    except DataError as error:
        raise DataError(
            f"examination cannot be estimated from this log ({error}); give propensity=, or judge "
            "by=ubm or another click model"
        ) from error


def _with_sessions(sessions: NDArray[np.int64], least: int) -> NDArray[np.intp]:
    kept = np.flatnonzero(sessions >= least)
    if len(kept) == 0:
        raise DataError(
            f"no query–document pair was displayed in {least} sessions or more (the most is "
            f"{sessions.max(initial=0)}); lower min_sessions"
        )
    return kept


def _table(
    log: ClickLog,
    pairs: NDArray[np.intp],
    found: PairParameter,
    sessions: NDArray[np.int64],
    grades: int,
) -> pa.Table:
    catalogue = log.catalogue
    assert catalogue is not None
    queries = catalogue.query_of_document[pairs]
    order = np.lexsort([-found.values, queries])
    return pa.table(
        {
            "query_id": pa.array(catalogue.query_ids[queries[order]], pa.string()),
            "doc_id": pa.array(catalogue.doc_ids[pairs[order]], pa.string()),
            "relevance": found.values[order],
            "low": found.low[order],
            "high": found.high[order],
            "sessions": sessions[order],
            "grade": cut_into_grades(found.values, queries, grades)[order],
        }
    )
