"""From a log to shards: reduced in an engine, and fetched from there one shard after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.log.assembly import assemble
from dualrank.data.log.engine import Engine, Progress, only_value
from dualrank.data.log.features_join import with_problems
from dualrank.data.log.reading_report import Problem, ReadingReport
from dualrank.data.log.reduction import Account, fetch_reduced
from dualrank.data.shards.engine_features import EngineFeatures
from dualrank.data.shards.shard_writing import ShardWriter, new_shards
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError
from dualrank.sentences import document_of


def fetch_shards(
    engine: Engine,
    account: Account,
    out: Path,
    shards: int,
    max_bad_share: float,
    features: EngineFeatures | None = None,
    progress: Progress | None = None,
) -> ShardedLog:
    """Write what `reduce_in_engine` keeps, cut into so many shards; only one of them is in memory.

    Nothing appears under the name before all of it is written.
    """
    account.report.check(max_bad_share)
    first = only_value(engine, "SELECT min(place) FROM shown")
    _refuse_useless(account.report, first == 1)
    depth = only_value(engine, "SELECT max(place) FROM shown")
    names = {
        name: _values(engine, f"context_{number}") for number, name in enumerate(account.contexts)
    }
    lost, first_shown = _Lost(), False
    with new_shards(out, shards) as new:
        writer = ShardWriter(
            new,
            int(depth),
            feature_count=None if features is None else features.count,
            feature_names=None if features is None else features.names,
        )

        def write(number: int) -> bool:
            """Write a shard, of which nothing is left here, and say if lists have a first place."""
            log = _with_values(assemble(fetch_reduced(engine, account, number)), names)
            matrix = None
            if features is not None:
                there, matrix = features.documents(number)
                log = lost.point_to(log, there, features.rows_of_pairs(number), features.where)
            writer.add(log, matrix)
            return bool((log.lists.documents[:, :1] != PADDING).any())

        for number in range(shards):
            first_shown |= write(number)
            if progress is not None:
                progress(number + 1, shards)
        # Lists may have gone for want of features.
        reading = lost.added_to(account.report)
        reading.check(max_bad_share)
        _refuse_useless(reading, first_shown)
        writer.finish(reading)
    return ShardedLog.open(out)


class _Lost:
    """What is lost for want of features, and what has features for nothing."""

    def __init__(self) -> None:
        self._sessions = self._clicked = self._unseen = 0
        self._example = self._unseen_example = ""

    def point_to(
        self, log: ClickLog, there: Catalogue, row_of: NDArray[np.int32], where: str
    ) -> ClickLog:
        """The log over the rows of its features, without lists that show what has none."""
        lists, mask = log.lists, log.lists.mask
        row_of = np.append(row_of, np.int32(PADDING))
        documents = np.where(mask, row_of[lists.documents], PADDING).astype(np.int32)
        unknown = mask & (documents == PADDING)
        bad = unknown.any(axis=1)
        if bad.any():
            self._sessions += int(log.sessions_per_list[bad].sum())
            self._clicked += int(log.counts[bad[log.list_of] & log.clicks.any(axis=1)].sum())
            number = int(np.flatnonzero(bad)[0])
            pair = int(lists.documents[number][unknown[number]][0])
            self._example = self._example or f"{_named(log.catalogue, pair)} is not in {where}"
            log, documents = log.take_lists(np.flatnonzero(~bad)), documents[~bad]
        self._count_unseen(documents, there)
        queries = np.zeros(len(documents), dtype=np.int32)
        if len(documents):
            queries = there.query_of_document[documents.max(axis=1)].astype(np.int32)
        return replace(log, lists=RankedLists(documents, queries), catalogue=there)

    def _count_unseen(self, documents: NDArray[np.int32], there: Catalogue) -> None:
        shown = np.bincount(documents[documents != PADDING], minlength=len(there.doc_ids)) > 0
        unseen = np.flatnonzero(~shown)
        self._unseen += len(unseen)
        if len(unseen) and not self._unseen_example:
            self._unseen_example = _named(there, int(unseen[0]))

    def added_to(self, reading: ReadingReport) -> ReadingReport:
        """An account with all of it."""
        problems = []
        if self._sessions:
            problems.append(Problem("no_features", self._sessions, self._example, self._clicked))
        if self._unseen:
            problems.append(Problem("not_in_log", self._unseen, self._unseen_example))
        return with_problems(reading, problems, reading.kept - self._sessions)


def _values(engine: Engine, column: str) -> tuple[str, ...]:
    """All values of a context, in order, whatever shard they are in."""
    found = engine.fetch(f"SELECT DISTINCT {column} AS value FROM happened").to_pydict()
    return tuple(sorted(found["value"]))


def _with_values(log: ClickLog, names: Mapping[str, Sequence[str]]) -> ClickLog:
    """The log with columns that know the values of all shards."""
    columns = dict(log.columns)
    for name, values in names.items():
        column = columns[name]
        number = {value: code for code, value in enumerate(values)}
        new = np.array([number[value] for value in column.names], dtype=np.int32)
        codes = new[column.codes] if len(new) else column.codes
        columns[name] = Column(tuple(values), codes)
    return replace(log, columns=columns)


def _named(catalogue: Catalogue | None, row: int) -> str:
    assert catalogue is not None
    query = catalogue.query_ids[catalogue.query_of_document[row]]
    return document_of(str(query), str(catalogue.doc_ids[row]))


def _refuse_useless(reading: ReadingReport, first_shown: bool) -> None:
    if reading.kept == 0:
        raise DataError(f"{reading.source}: none of its {reading.sessions} sessions is left")
    if not first_shown:
        raise DataError(
            f"{reading.source}: no session shows a document at position 1, to which examination "
            "is relative; number the positions from the first that is shown"
        )
