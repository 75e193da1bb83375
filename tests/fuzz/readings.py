"""What each kind of file is read for, by the functions that commands and Python users call.

Every reading gives its meaning as plain values, so that two can be compared, and insists on what
all code behind the reader relies on: a `NonsenseError` tells of a file that should not have been
let in. What refuses to go on with what was read need not name the file: `using` does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import dualrank as dr
from dualrank.clicks.users import read_user
from dualrank.data.qrels import with_qrels
from dualrank.data.runs import read_rankings, read_run
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.decisions import compare, read_interleaved, read_lists
from dualrank.errors import DataError, DualrankError, SettingsError
from dualrank.online import Collector, EventStore, LearnerRecord, Segments, Versions
from dualrank.online.learner.learner_state import LearnerState
from dualrank.pages.index import PageIndex
from dualrank.pages.sources import Unreadable, find_pages
from dualrank.pages.tables import read_pairs, read_queries
from dualrank.report.results import Results
from dualrank.reproduce.kept_runs import KeptRuns

from .seeds import TASK, clicks, documents, exported, trained

ROUNDING = 1e-5


class NonsenseError(Exception):
    """What was read cannot be true."""


def require(true: Any, what: str) -> None:
    """That this holds of what was read."""
    if not np.all(true):
        raise NonsenseError(what)


@contextmanager
def using(path: Path) -> Iterator[None]:
    """What is done with values that were read from this file."""
    try:
        yield
    except DualrankError as error:
        raise DataError(f"{path}: {error}") from error


def log(path: Path, events: Path | None = None, **options: Any) -> Any:
    """A click log of any kind."""
    found = dr.read_log(path, events=events, **options)
    lists, names = found.lists, found.catalogue
    rows = len(found.counts)
    if names is None:
        raise NonsenseError("a log without names")
    require(found.counts >= 1, "a count below 1")
    require(found.counts < 2**53, "more sessions than can be added up")
    require((found.list_of >= 0) & (found.list_of < len(lists)), "sessions of no list")
    require(lists.documents < len(names.doc_ids), "a document without a name")
    require(lists.mask.any(axis=1), "an empty list")
    require(~found.clicks | lists.mask[found.list_of], "a click below the end of a list")
    for column in found.columns.values():
        require((column.codes >= 0) & (column.codes < len(column.names)), "a code of no value")
    for amounts in found.events.values():
        require(np.isfinite(amounts) & (amounts >= 0), "an amount that is none")
    require(len(found.list_of) == rows and len(found.clicks) == rows, "rows of several lengths")
    shown = [
        (str(names.query_ids[query]), [str(names.doc_ids[d]) for d in listed if d >= 0])
        for query, listed in zip(lists.queries, lists.documents, strict=True)
    ]
    return sorted(
        repr(
            (
                shown[found.list_of[row]],
                np.flatnonzero(found.clicks[row]).tolist(),
                int(found.counts[row]),
                [(n, c.names[c.codes[row]]) for n, c in found.columns.items()],
                [(kind, amounts[row].tolist()) for kind, amounts in found.events.items()],
            )
        )
        for row in range(rows)
    )


def shards(folder: Path) -> Any:
    """A log in shards, as parts and as one."""
    found = ShardedLog.open(folder)
    parts = []
    for shard in found.shards:
        shard.verify()
        part, names = shard.log, shard.catalogue()
        require(part.lists.documents < len(names.doc_ids), "a document without a name")
        require(np.isfinite(shard.dataset.features) | np.isnan(shard.dataset.features), "infinite")
        require(part.counts >= 1, "a count below 1")
        arrays = (part.lists.documents, part.list_of, part.clicks, part.counts, shard.pair_counts)
        parts.append((names.pairs(), [array.tolist() for array in arrays]))
        parts.append(shard.dataset.features.tolist())
    return [repr(parts), log(folder)]


def ubi(queries: Path, events: Path) -> Any:
    """Queries and events of User Behavior Insights, with another action and a time."""
    kinds = ["add_to_cart", "dwell_time"]
    return log(queries, events, event_kinds=kinds, max_bad_share=1.0)


def interleavings(path: Path) -> Any:
    """Lists that were served."""
    found = read_lists(path)
    for drawn in found.lists.values():
        for each in drawn:
            require(len(set(each.documents)) == len(each.documents), "a document twice")
            require(np.isfinite(each.credits) & (np.array(each.credits) >= 0), "a credit below 0")
            require(set(each.arms) <= {*found.making.arms, None}, "an arm that there is not")
    return sorted((query, list(map(repr, drawn))) for query, drawn in found.lists.items())


def interleaved(path: Path) -> Any:
    """Interleaved sessions, and who is preferred."""
    found = read_interleaved(path, max_bad_share=1.0)
    require(np.isfinite(found.credits) & (found.credits >= 0), "a credit that is none")
    with using(path):
        compared = compare(found, permutations=9)
    return found.arms, found.sessions, compared.pairs[0].mean


def _dataset(found: dr.Dataset, path: Path, *, missing: bool = False, trusted: bool = False) -> Any:
    """Documents; features may be `missing`, and are not looked at where they are `trusted`."""
    require(np.diff(found.offsets) > 0, "a query without documents")
    require(found.offsets[-1] == len(found.features), "documents of no query")
    require(trusted or not np.isinf(found.features).any(), "an infinite feature")
    require(trusted or missing or not np.isnan(found.features).any(), "no number as a feature")
    if found.grades is not None:
        require(np.isfinite(found.grades), "a grade that is no number")
        with using(path):
            dr.evaluate(np.nan_to_num(found.features[:, 0]), found)
    dr.top_lists(found, found.features[:, 0], 3)
    ids = None if found.doc_ids is None else found.doc_ids.tolist()
    return [
        found.features.tolist(),
        found.offsets.tolist(),
        found.query_ids.tolist(),
        None if found.grades is None else found.grades.tolist(),
        ids,
        found.feature_names,
    ]


def features(path: Path) -> Any:
    """Documents with features, which may be missing."""
    return _dataset(dr.read_features(path), path, missing=True)


def letor(path: Path, cache: bool = False) -> Any:
    """LETOR text, or the cache that lies beside it.

    To look at all numbers of a cache would take the time that it saves.
    """
    return _dataset(dr.read_letor(path, cache=cache), path, trusted=cache)


def run(path: Path) -> Any:
    """The scores of a run."""
    scores = read_run(path, documents())
    require(scores < np.inf, "a score that is infinite")
    require([len(top) <= 3 for top in read_rankings(path, 3).values()], "a longer ranking")
    return scores.tolist()


def qrels(path: Path) -> Any:
    """Judgements beside documents."""
    found, missing = with_qrels(documents(), path)
    require(found.require_grades() >= 0, "a grade below 0")
    return _dataset(found, path), missing


def pairs(path: Path) -> Any:
    """Query–document pairs with grades."""
    found = read_pairs(path)
    grades = None if found.grades is None else found.grades.tolist()
    return found.query_ids.tolist(), found.doc_ids.tolist(), grades


def queries(path: Path) -> Any:
    """The words of queries."""
    found = read_queries(path)
    require(all(isinstance(each, str) for each in (*found.query_ids, *found.texts)), "no text")
    return found.query_ids, found.texts


def _scores(model: dr.Model) -> Any:
    count = model.scaler.input_count
    X = np.random.default_rng(0).normal(size=(20, count)).astype(np.float32)
    scores = model.predict(dr.Dataset.from_arrays(X, np.repeat(np.arange(5), 4)))
    require(np.isfinite(scores), "a score that is no number")
    return scores.tolist()


def _curve(curve: dr.Propensity | None) -> Any:
    if curve is None:
        return None
    require(np.isfinite(curve.examination) & (curve.examination > 0), "no examination")
    require(np.isfinite(curve.weights), "an infinite weight")
    bounds = [None if b is None else b.tolist() for b in (curve.low, curve.high)]
    parts = {name: _curve(each) for name, each in curve.by_context.items()}
    return curve.method, curve.sessions, curve.examination.tolist(), bounds, parts, curve.details


def model(folder: Path) -> Any:
    """A model directory, and the scores that it gives."""
    found = dr.Model.load(folder)
    names = found.feature_names
    require(names is None or len(names) == found.scaler.input_count, "names of no features")
    with using(folder):
        scores = _scores(found)
    # The order of names in JSON means nothing.
    training = json.dumps(found.training, sort_keys=True)
    remembered = None if found.memory is None else found.memory.arrays()
    held = [] if remembered is None else [each.tobytes() for each in remembered.values()]
    # The order of tensors in a file means nothing, either.
    sums = [(name, found.optimizers[name].tolist()) for name in sorted(found.optimizers)]
    return scores, _curve(found.propensity), names, found.kind, training, held, sums


def checkpoint(folder: Path, ranker: str) -> Any:
    """A training that goes on where it was, to its end."""
    path = folder / "checkpoint.safetensors"
    try:
        found = trained(ranker, path)
        scores = _scores(found)
    except (DataError, SettingsError) as error:  # values from which no training goes on
        raise DataError(f"{path}: {error}") from error
    return scores, _curve(found.propensity)


def propensity(path: Path) -> Any:
    """A curve of examination."""
    return _curve(dr.Propensity.read(path))


def click_model(path: Path) -> Any:
    """A fitted click model, on lists that it knows."""
    found = dr.load_click_model(path)
    table = found.relevance()
    for name in ("relevance", "low", "high"):
        values = table[name].to_numpy()
        require((values >= -ROUNDING) & (values <= 1 + ROUNDING), f"{name} that is no probability")
    require(table["observations"].to_numpy() >= 1, "fewer observations than one")
    depth = min(found.fitted.depth, 4)
    shown = dr.RankedLists(clicks().lists.documents[:, :depth], clicks().lists.queries)
    likely = found.click_probabilities(shown, catalogue=clicks().catalogue)
    require((likely >= -ROUNDING) & (likely <= 1 + ROUNDING), "clicks that are no probability")
    return table.to_pydict(), likely.tolist()


def user(path: Path) -> Any:
    """A simulated user, who looks at lists."""
    found = read_user(path)
    data = documents()
    with using(path):
        log = dr.sample_log(data, dr.top_lists(data, data.features[:, 0], 4), found, 50, 1)
    require(log.sessions == 50, "sessions that are lost")
    return repr(found), log.clicks_per_list.tolist()


def pages(path: Path) -> Any:
    """Pages, and those that could not be read."""
    found = [page for batch in find_pages(path).batches() for page in batch.read()]
    for page in found:
        if isinstance(page, Unreadable):
            sentence = f"{page.place}: {page.reason}"
            require(sentence.splitlines() == [sentence], "a reason of several lines")
            require(len(page.reason) <= 500, "a reason that nobody reads")
    return list(map(repr, found))


def index(folder: Path) -> Any:
    """An index of pages, searched for what is in it."""
    opened = PageIndex.open(folder)
    hits = [opened.search(words) for words in ("words", "größe 1", "page 2 nothing")]
    require([np.isfinite(hit.score) for each in hits for hit in each], "a score that is no number")
    return len(opened), list(map(repr, hits))


def kept_runs(folder: Path) -> Any:
    """Finished work of an experiment; what is damaged is set aside and done again."""
    found = KeptRuns(folder).find(TASK)
    if found is None:
        raise DataError(f"{folder}: set aside")
    for each in found:
        for values in each.per_query.values():
            require(values.dtype.kind == "f" and values.ndim == 1, "metrics of no queries")
            require(np.isfinite(values), "a metric that is no number")
    return [(each.run.model_dump(), str(each.per_query), each.sizes) for each in found]


def results(path: Path) -> Any:
    """The runs of an experiment."""
    return Results.read(path).model_dump()


def beside_an_export(folder: Path, target: str) -> Any:
    """A template that its user has filled in, and that the next export keeps and looks into."""
    out = folder / "model.json"
    written = dr.export(exported(), target, out)
    require(written.sentence.isprintable(), "a sentence of several lines")
    return written.sentence.replace(str(out), "")


def versions(folder: Path) -> Any:
    """Which versions there are, and which is live."""
    note = Versions(folder).note()
    if note.live not in note.versions:
        raise NonsenseError("a version is live that is not there")
    return note.live, note.anchor, sorted(note.versions), len(note.happened)


def learner_record(folder: Path) -> Any:
    """What a learner has seen."""
    found = LearnerRecord.read(folder)
    return [each.sessions for each in found.rounds], [each.said for each in found.alarms]


def learner_state(folder: Path) -> Any:
    """How far a learner has come."""
    found = LearnerState.read(folder)
    return None if found is None else asdict(found)


def stored_events(path: Path) -> Any:
    """What a store of events holds, by the segment that is made of it."""
    with TemporaryDirectory() as place, using(path):
        shutil.copy(path, place)
        with EventStore(place, wait=0.0) as store:
            Collector(store, Segments(place), every=0.0).collect()
            counts = store.counts()
        require(all(count >= 0 for count in counts.values()), "fewer than no events")
        segments = Segments(place)
        return [dr.read_log(segments.clicks(n)).counts.tolist() for n in segments.closed()]
