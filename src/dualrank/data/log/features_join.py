"""A log pointed to the documents of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.log.assembly import in_order
from dualrank.data.log.reading_report import KINDS, Problem, ReadingReport
from dualrank.errors import DataError
from dualrank.sentences import document_of


def point_to(log: ClickLog, dataset: Dataset) -> ClickLog:
    """The log over the rows of a data set instead of its own catalogue.

    Lists with a document that has no features are left out, with their sessions, and counted in
    the log's `reading`, as are documents that have features and were never displayed.
    """
    there, ours, reading = dataset.catalogue, log.catalogue, log.reading
    if ours is None or reading is None:
        raise DataError("this log does not know the names of its documents")
    rows = {pair: row for row, pair in enumerate(there.pairs())}
    pairs = ours.pairs()
    for pair in there.pairs_twice().intersection(pairs):
        raise DataError(
            f"{dataset.source}: {document_of(*pair)} stands there twice; expected one row of "
            "features"
        )
    row_of = np.array([rows.get(pair, PADDING) for pair in pairs], dtype=np.int32)
    if len(pairs) and (row_of == PADDING).all():
        raise DataError(nothing_in_common(dataset.source, pairs[0], next(iter(rows))))

    lists = log.lists
    documents = np.where(lists.mask, row_of[lists.documents], PADDING).astype(np.int32)
    unknown = (documents == PADDING) & lists.mask
    bad = unknown.any(axis=1)
    problems = []
    if bad.any():
        found = int(log.sessions_per_list[bad].sum())
        clicked = int(log.counts[bad[log.list_of] & log.clicks.any(axis=1)].sum())
        number = int(np.flatnonzero(bad)[0])
        pair = pairs[int(lists.documents[number][unknown[number]][0])]
        example = f"{document_of(*pair)} is not in {dataset.source}"
        problems.append(Problem("no_features", found, example, clicked))
        log = log.take_lists(np.flatnonzero(~bad))
        documents = documents[~bad]
    shown = np.bincount(documents[documents != PADDING], minlength=dataset.document_count) > 0
    if not shown.all():
        first = int(np.flatnonzero(~shown)[0])
        query = there.query_ids[there.query_of_document[first]]
        example = document_of(str(query), str(there.doc_ids[first]))
        problems.append(Problem("not_in_log", int((~shown).sum()), example))
    # Any document of a list tells its query; the first place may be a gap.
    queries = there.query_of_document[documents.max(axis=1, initial=0)]
    joined = in_order(
        RankedLists(documents, queries.astype(np.int32)),
        log.list_of,
        log.clicks,
        log.counts,
        dict(log.columns),
        there,
        log.events,
    )
    return replace(joined, reading=with_problems(reading, problems, joined.sessions))


def nothing_in_common(where: str, shown: tuple[str, str], there: tuple[str, str]) -> str:
    """The sentence against features of other documents than the log shows, with one of each."""
    return (
        f"{where}: no document of the log has features; the log shows {document_of(*shown)}, the "
        f"features begin with {document_of(*there)}: the ids must be written alike"
    )


def with_problems(reading: ReadingReport, problems: Sequence[Problem], kept: int) -> ReadingReport:
    """An account with what was lost when a log met its features."""
    found = {problem.kind: problem for problem in (*reading.problems, *problems)}
    lost = sum(p.count for p in problems if p.treatment == "dropped")
    clicked = sum(p.clicked or 0 for p in problems if p.treatment == "dropped")
    return replace(
        reading,
        problems=tuple(found[kind] for kind in KINDS if kind in found),
        kept=kept,
        bad=reading.bad + lost,
        bad_clicked=reading.bad_clicked + clicked,
    )
