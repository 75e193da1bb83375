"""What came in since the last round: segments as a click log over features, cleaned of what is
wrong, and cut into queries that are learned from and queries that are held out for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.features import read_features
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError
from dualrank.learning.model import Model
from dualrank.online.learner.laid_out import LaidOut
from dualrank.online.learner.wrong_traffic import Sessions, Suspicion, wrong_sessions
from dualrank.sentences import counted, listed, reason_of

READ = ("session_id", "query_id", "doc_id", "position", "clicked", "timestamp", "client_id")
ENOUGH = 100
"""Documents of which a feature that does not differ is taken for empty."""
FAR = 1000.0
"""Deviations from the mean of a feature beyond which its value is an error: of n documents none
lies further than √n from their mean, and of a million none at such a place."""


class ClosedSegments(Protocol):
    """Where closed segments lie, by number."""

    def closed(self) -> list[int]:
        """The numbers of all, in order."""

    def clicks(self, number: int) -> Path:
        """The click log of one."""

    def features(self, number: int) -> Path | None:
        """The features of what it displayed, where requests brought them."""


@dataclass(frozen=True, eq=False)
class RoundClicks:
    """The sessions of some segments that can be learned from."""

    segments: tuple[int, ...]
    log: ClickLog | None
    """Nothing where no session is left."""
    dataset: Dataset | None
    sessions: int
    """All of them, what was left out included."""
    clicks: int
    """Their clicks."""
    latest: float
    """When the last list was displayed, in seconds since 1970; 0 where that is not known."""
    suspicions: tuple[Suspicion, ...] = ()
    rate: float = 0.0
    """Clicks a session, what was left out included."""

    def part(self, held_out: HeldOutQueries, *, held: bool) -> ClickLog | None:
        """The log of the queries that are held out, or of the others, if there is any."""
        if self.log is None or self.dataset is None:
            return None
        used, query = np.unique(self.log.lists.queries, return_inverse=True)
        marked = held_out(self.dataset.query_ids[used])[query]
        lists = np.flatnonzero(marked == held)
        return self.log.take_lists(lists) if len(lists) else None

    def laid_out(self, model: Model) -> LaidOut | None:
        """The lists by the scores of a model that has not learned from them."""
        if self.log is None or self.dataset is None:
            return None
        log, dataset = pooled([(self.log, self.dataset)])
        return LaidOut.of(log, model.predict(dataset), query_numbers(dataset.query_ids))


@dataclass(frozen=True)
class HeldOutQueries:
    """Queries that no ranker learns from: a share of all, by a digest of their ids.

    A held-out query stays held out, in whatever order queries come, whoever asks, and for ever.

    >>> held = HeldOutQueries(0.5)
    >>> held(np.array(["a", "b", "c", "d"])).tolist()
    [True, False, True, False]
    """

    share: float

    def __call__(self, query_ids: NDArray[np.str_]) -> NDArray[np.bool_]:
        """Whether each query is held out."""
        return np.asarray(query_numbers(query_ids) < self.share * 2.0**64)


def query_numbers(query_ids: NDArray[np.str_]) -> NDArray[np.uint64]:
    """A number for each query, from 64 bits of a digest of its id."""
    digests = (
        hashlib.blake2b(str(each).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for each in query_ids
    )
    return np.array([int.from_bytes(each, "big") for each in digests], dtype=np.uint64)


def read_round(
    segments: ClosedSegments,
    numbers: Sequence[int],
    table: Dataset | None = None,
    rates: Sequence[float] = (),
    *,
    varies: NDArray[np.integer] | None = None,
    takes_missing: bool = False,
    scaler: Scaler | None = None,
) -> RoundClicks:
    """Read segments together.

    Features are those that the segments brought, as the model scored them, and for other documents
    those of `table`. Where one of those brought that `varies` by what the model knows is the same
    everywhere, nothing of the round is learned from. Rankers that take no missing features get
    none: lists with such documents are left out, and those with features that lie far outside of
    what the `scaler` of the model knows.
    """
    rows = pa.concat_tables([_read(segments.clicks(n)) for n in numbers], promote_options="default")
    sessions = Sessions.of(rows)
    left_out, suspicions = wrong_sessions(sessions, rates)
    latest = _latest(rows)
    found = RoundClicks(
        tuple(numbers),
        None,
        None,
        len(sessions),
        int(sessions.clicks.sum()),
        latest,
        tuple(suspicions),
        sessions.rate,
    )
    brought = _features(segments, numbers)
    dataset = _completed(table, brought, rows)
    if dataset is None:
        said = "segments without features, and no table of them was given (--features)"
        return replace(found, suspicions=(*found.suspicions, Suspicion("feature", said)))
    kept = rows.filter(pa.array(~left_out[sessions.of_row])) if left_out.any() else rows
    if kept.num_rows == 0:
        return found
    columns = [name for name in READ if name in kept.column_names and name != "client_id"]
    try:
        log = ClickLog.read(kept.select(columns), dataset, max_bad_share=1.0, periods=0)
    except DataError as error:
        said = f"nothing of {_named(numbers)} can be learned from: {error}"
        return replace(found, suspicions=(*suspicions, Suspicion("feature", said)))
    problems = () if log.reading is None else log.reading.problems
    suspicions += [
        Suspicion(
            "feature" if each.kind == "no_features" else "clicks",
            f"{each.says} ({each.times}; {each.example}): left out of learning",
        )
        for each in problems
        if each.treatment == "dropped"
    ]
    usable: ClickLog | None = log
    if brought is not None and (said := _empty_features(brought, varies)):
        usable = None
        suspicions.append(Suspicion("feature", said))
    else:
        shown = np.unique(log.lists.documents[log.lists.mask])
        for what, bad in _bad_rows(dataset, shown, scaler, takes_missing):
            usable, more = _without(usable, bad, what)
            suspicions += more
    return replace(found, log=usable, dataset=dataset, suspicions=tuple(suspicions))


def latest_rows(datasets: Sequence[Dataset]) -> Dataset:
    """One data set of several; of a document that several have, the features of the last."""
    if len(datasets) == 1:
        return datasets[0]
    counts = {each.feature_count for each in datasets}
    if len(counts) > 1:
        raise DataError(
            f"{datasets[-1].source}: documents with {listed(map(str, sorted(counts)))} features; "
            "expected as many everywhere as the model ranks by"
        )
    queries = np.concatenate([np.repeat(d.query_ids, d.lengths) for d in datasets])
    documents = np.concatenate([d.ids_of_documents() for d in datasets])
    features = np.concatenate([d.features for d in datasets])
    _, of_query = np.unique(queries, return_inverse=True)
    _, of_document = np.unique(documents, return_inverse=True)
    pair = of_query.astype(np.int64) * (int(of_document.max(initial=0)) + 1) + of_document
    # The last of each: the first of all, read from the end.
    _, from_end = np.unique(pair[::-1], return_index=True)
    rows = len(pair) - 1 - from_end
    return replace(
        Dataset.from_arrays(
            features[rows],
            queries[rows],
            doc_ids=documents[rows],
            feature_names=datasets[-1].feature_names or datasets[0].feature_names,
        ),
        source=datasets[-1].source,
    )


def _read(path: Path) -> pa.Table:
    try:
        schema = pq.read_schema(path)
        table = pq.read_table(path, columns=[name for name in READ if name in schema.names])
        table.validate(full=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not readable as a segment ({reason_of(error)})") from error
    for name in READ[:5]:
        if name not in table.column_names:
            raise DataError(
                f"{path}: a segment has a column {name}; there are {listed(table.column_names)}"
            )
    return table


def _features(segments: ClosedSegments, numbers: Sequence[int]) -> Dataset | None:
    paths = [path for n in numbers if (path := segments.features(n)) is not None]
    return latest_rows([read_features(path) for path in paths]) if paths else None


def _completed(table: Dataset | None, brought: Dataset | None, rows: pa.Table) -> Dataset | None:
    """What requests brought, and the table of what they did not bring for the queries of a round.

    A request that brings features is ranked by these, whatever the table says.
    """
    if table is None or brought is None:
        return brought if table is None else table
    asked = pc.unique(pc.cast(rows["query_id"], pa.string())).to_numpy(zero_copy_only=False)
    known = np.flatnonzero(np.isin(table.query_ids, asked.astype(str)))
    return latest_rows([table.take(known), brought]) if len(known) else brought


def _latest(rows: pa.Table) -> float:
    if "timestamp" not in rows.column_names or rows.num_rows == 0:
        return 0.0
    times = rows["timestamp"]
    if pa.types.is_timestamp(times.type):
        return float(pc.max(pc.cast(times, pa.timestamp("us"))).cast(pa.int64()).as_py() or 0) / 1e6
    if pa.types.is_integer(times.type) or pa.types.is_floating(times.type):
        return float(pc.max(times).as_py() or 0.0)
    return 0.0


def _empty_features(dataset: Dataset, varies: NDArray[np.integer] | None) -> str:
    """Which features are the same everywhere that were not, in a sentence; "" where none are."""
    if dataset.document_count < ENOUGH:
        return ""
    features = dataset.features
    alike = (features == features[0]) | (np.isnan(features) & np.isnan(features[0]))
    same: NDArray[np.bool_] = np.all(alike, axis=0)
    if varies is not None:
        known = np.zeros(len(same), dtype=bool)
        known[varies[varies < len(same)]] = True
        same = same & known
    empty = np.flatnonzero(same)
    if len(empty) == 0:
        return ""
    names = dataset.feature_names or tuple(map(str, range(1, dataset.feature_count + 1)))
    one = len(empty) == 1
    return (
        f"feature{'' if one else 's'} {listed(names[i] for i in empty)} "
        f"{'is' if one else 'are'} the same for all {dataset.document_count} documents: the round "
        "is left out of learning"
    )


def _bad_rows(
    dataset: Dataset, shown: NDArray[np.integer], scaler: Scaler | None, takes_missing: bool
) -> Iterator[tuple[str, NDArray[np.integer]]]:
    """Displayed documents that cannot be learned from, by what is wrong with them."""
    features = dataset.features[shown]
    missing: NDArray[np.bool_] = np.any(np.isnan(features), axis=1)
    if not takes_missing:
        yield "missing features", shown[missing]
    if scaler is not None and scaler.kind != "none":
        far: NDArray[np.bool_] = np.any(np.abs(scaler.transform(features)) > FAR, axis=1)
        yield "features far outside of what the model was trained on", shown[far & ~missing]


def _without(
    log: ClickLog | None, bad: NDArray[np.integer], what: str
) -> tuple[ClickLog | None, list[Suspicion]]:
    """The log without lists that show a bad document."""
    if log is None or len(bad) == 0:
        return log, []
    shows = (np.isin(log.lists.documents, bad) & log.lists.mask).any(axis=1)
    sessions = int(log.sessions_per_list[shows].sum())
    if not sessions:
        return log, []
    said = f"{counted(sessions, 'sessions')} show documents with {what}: left out of learning"
    left = np.flatnonzero(~shows)
    return log.take_lists(left) if len(left) else None, [Suspicion("feature", said)]


def _named(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"segment {numbers[0]}"
    return f"segments {numbers[0]} to {numbers[-1]}"


def pooled(parts: Sequence[tuple[ClickLog, Dataset]]) -> tuple[ClickLog, Dataset]:
    """Several logs as one, over a data set of the queries that they show and no others."""
    first = parts[0][1]
    if all(dataset is first for _, dataset in parts):
        dataset = first
        row_maps: list[NDArray[np.int32] | None] = [None] * len(parts)
    else:
        dataset = latest_rows([each for _, each in parts])
        rows = {pair: row for row, pair in enumerate(dataset.pairs())}
        row_maps = [
            np.array([rows[pair] for pair in each.pairs()], dtype=np.int32) for _, each in parts
        ]
    depth = max(log.lists.depth for log, _ in parts)
    documents, list_of, clicks, counts, start = [], [], [], [], 0
    for (log, _), row_map in zip(parts, row_maps, strict=True):
        shown, missing = log.lists.documents, depth - log.lists.depth
        if row_map is not None:
            shown = np.where(log.lists.mask, row_map[shown], PADDING)
        documents.append(np.pad(shown, ((0, 0), (0, missing)), constant_values=PADDING))
        clicks.append(np.pad(log.clicks, ((0, 0), (0, missing))))
        list_of.append(log.list_of + start)
        counts.append(log.counts)
        start += len(log.lists)
    shown = np.concatenate(documents).astype(np.int32)
    queries = dataset.query_of_document[shown.max(axis=1, initial=0)]
    used, query = np.unique(queries, return_inverse=True)
    small = dataset.take(used)
    shift = small.offsets[:-1] - dataset.offsets[used]
    shown = np.where(shown == PADDING, PADDING, shown + shift[query][:, None]).astype(np.int32)
    log = ClickLog(
        RankedLists(shown, query.astype(np.int32)),
        np.concatenate(list_of).astype(np.int32),
        np.concatenate(clicks),
        np.concatenate(counts),
        catalogue=small.catalogue,
    )
    return log, small
